// Package httplimit limits HTTP requests with package hybrid: a middleware for
// net/http and the routers on top of it, with the standard library alone.
//
//	api, err := node.Limiter("api", hybrid.PerMinute(1000), nil)
//	...
//	limit, err := httplimit.New(api, &httplimit.Options{Key: httplimit.Header("X-API-Key")})
//	...
//	http.ListenAndServe(":8080", limit(mux))
//
// # What is answered
//
//	the request                             status          headers
//	passes                                  the handler's   the limit's
//	passes, in shadow mode only             the handler's   the limit's
//	is skipped, or free (cost 0)            the handler's   none
//	is denied                               429             the limit's, Retry-After
//	is denied and can never pass            429             the limit's
//	is denied since Redis does not answer   503             the limit's, Retry-After
//	has no key, or one of over 2 KiB        400             none
//	has a negative cost                     500             none
//	was left by its client                  499             none; nobody reads it
//	was out of time before it was decided   503             Retry-After: 1
//	came after the limiter was closed       503             Retry-After: 1
//
// The limit's headers are chosen with Options.Headers. Retry-After is in whole
// seconds, rounded up, at least 1: after it the same request can pass, if nobody
// else uses the key. It is missing where no wait helps: the limit is 0, or the
// request costs more than the limit. The bodies are a line of text, or problem
// documents by option; Options.Deny and Options.Failure replace them. Options.Decided is
// told of each decision, for logs and traces.
//
// 503 is the answer of a limit that is FailClosed while Redis does not answer;
// a FailLocal one denies with 429 what is above the node's share.
//
// # Keys
//
// Each request is counted under a Key: an address, a header, a route, a user,
// or several of them as one. A request without a key is refused. It never
// shares a budget with others by accident: that is for Fixed, on purpose. No header
// that clients write can choose an address's budget, unless it comes through a proxy
// that ClientIP was told to trust.
//
// # Several limits
//
// Options.More lets a request pass several limits or charges none of them. To
// limit at the edge first, coarsely, and then precisely in a handler, wrap twice: the
// inner one's headers are shown, as it writes them last.
//
// # Other frameworks
//
// contrib/hybridgin, contrib/hybridecho and contrib/hybridfiber are this middleware
// for Gin, Echo and Fiber, each in a module of its own. What does not speak net/http
// is served by a Decider.
//
// # Cost
//
// A request that passes from a slice takes no lock and no network. Beyond what
// the limiter and the Key do it allocates the values of the headers, two pieces of
// memory; with NoHeaders nothing. An IPv6 network and a Join allocate their text. The
// one exception: each of the first 256 different limits that the IETF headers show, of
// LimitFor or of SetLimit, is written down under a lock when it is shown first. Those
// beyond are written anew each time, in the same two pieces and without the lock.
//
// docs/http.md has more to copy.
package httplimit
