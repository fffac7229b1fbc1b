// Package hybridgrpc limits gRPC calls with package hybrid: interceptors for the
// servers and the clients of google.golang.org/grpc.
//
//	api, err := node.Limiter("api", hybrid.PerMinute(1000), nil)
//	...
//	opts := &hybridgrpc.ServerOptions{Key: hybridgrpc.Metadata("x-api-key")}
//	unary, err := hybridgrpc.UnaryServer(api, opts)
//	...
//	stream, err := hybridgrpc.StreamServer(api, opts)
//	...
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream))
//
// # What a server answers
//
//	the call                                code               details
//	passes                                  the handler's      the handler's
//	passes, in shadow mode only             the handler's      the handler's
//	is skipped, or free (cost 0)            the handler's      the handler's
//	is denied                               ResourceExhausted  RetryInfo, QuotaFailure
//	is denied and can never pass            ResourceExhausted  QuotaFailure
//	is denied since Redis does not answer   Unavailable        RetryInfo
//	has no key, or one of over 2 KiB        InvalidArgument    none
//	has a negative cost                     Internal           none
//	was left by its client                  Canceled           none
//	was out of time before it was decided   DeadlineExceeded   none
//	came after the limiter was closed       Unavailable        RetryInfo: a second
//
// RetryInfo says after how long the same call can pass, if nobody else uses the
// key, and QuotaFailure which limit denied: by its name, never by the key. Unavailable
// is the answer of a limit that is FailClosed while Redis does not answer; a FailLocal
// one denies with ResourceExhausted what is above the node's share.
// ServerOptions.Decided is told of each decision, for logs and traces.
//
// # Metadata
//
// Each call that a limit decided shows it, in the fields of package httplimit (see
// ServerOptions.Headers), and a denial in retry-after too. They are in the trailer,
// unless ServerOptions.InHeader moves those of calls that pass. A denial is a trailer alone,
// and so are errors of handlers: only such answers are retried by clients.
//
// # Retries
//
// A client with a retryPolicy that has RESOURCE_EXHAUSTED or UNAVAILABLE among its
// retryableStatusCodes retries denials by itself. It obeys grpc-retry-pushback-ms, which
// each denial has: the time of RetryInfo, in place of the policy's backoff; or -1, which
// says not to retry, where it would be in vain. That is when no wait helps, when the
// call's deadline comes first, and when the wait is longer than
// ServerOptions.LongestPushback. So such a client waits as told and succeeds, or it has the
// status at once.
//
// # Keys
//
// Each call is counted under a Key: an address, a piece of metadata, a method, a user,
// or several of them as one. A call without a key is refused. It never shares a budget
// with others by accident: that is for Fixed, on purpose. Nothing that a client sends
// can choose an address's budget, unless it comes through a proxy that ClientIP was
// told to trust.
//
// Interceptors run in their order in the chain: one that authenticates must come before
// one that counts by what it found.
//
// # Several limits
//
// ServerOptions.More lets a call pass several limits or charges none of them. For
// other limits on other methods make several interceptors, each with
// ServerOptions.Methods. Where two of them decide the same call, give one NoHeaders:
// metadata adds up, so both would be shown.
//
// # Streams
//
// A stream is charged when it opens. ServerOptions.Messages charges each message that
// the client sends too, and ends the stream when one is denied, or slows the client
// down.
//
// # Clients
//
// UnaryClient and StreamClient keep a program's own calls to what a service allows:
// they wait until a call passes, and fail at once where that would be after the call's
// deadline. A limit that all of the fleet shares keeps all of the fleet to it.
package hybridgrpc
