package hybridgrpc

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/fields"
)

// ServerOptions are the settings of UnaryServer and StreamServer, which can share them.
// The zero value of each field means its default. Functions are called from any
// goroutine.
type ServerOptions struct {
	// Key finds what a call is counted under; default PeerIP(nil).
	Key Key

	// Cost is how many tokens a call takes; default 1 for each. A call of cost 0 is
	// free: it passes without asking, and shows no limit.
	Cost func(context.Context, Call) int64

	// Methods are the methods that are limited: "/package.Service/Method", or all of a
	// service with "/package.Service/*"; default all. Others pass without asking.
	Methods []string

	// Skip lets a call pass without asking, such as a health check.
	Skip func(context.Context, Call) bool

	// Name is what answers call the limit; default the limiter's name.
	Name string

	// More are further limits that a call must pass: per day beside per second, per
	// tenant beside per user. All are charged or none. The limit that denied is that of
	// the answer; else one that only shadow mode let pass, or the tightest one. Their
	// limiters must be of the same node.
	More []Check

	// Messages says whether what a client sends on a stream is charged; default
	// FreeMessages.
	Messages Messages

	// Headers are the fields that show the limit, as in package httplimit but in small
	// letters; default XRateLimit. NoHeaders leaves retry-after and
	// grpc-retry-pushback-ms to denials.
	Headers httplimit.Headers

	// InHeader moves the fields of calls that pass from the trailer to the header, where
	// a client of a stream sees them at once. A call with a header is not retried by
	// clients, should the handler fail later. Denials are in the trailer in any case.
	InHeader bool

	// LongestPushback is the longest wait that a client's retry policy is asked for:
	// beyond, it is told not to retry. 1 ms to 24 days, default a minute.
	LongestPushback time.Duration

	// NoKey is the code of a call that has no key; any but OK, default InvalidArgument.
	// Unauthenticated is usual where the key is an API key.
	NoKey codes.Code

	// Subject is what a QuotaFailure names; default Decision.Name. Who returns
	// Decision.Key shows clients what they are counted under. Beyond 256 bytes it is cut.
	Subject func(Decision) string

	// Deny makes the error of a call that was denied, instead of the default; nil leaves
	// it at that. The trailer is set already.
	Deny func(context.Context, Decision) error

	// Failure makes the error of a call that could not be decided, instead of the default
	// in the table of the package; nil leaves it at that. It is told an ErrNoKey, the
	// context's error, or one of hybrid, which may hold what a Key function put into it: do
	// not show it to clients.
	Failure func(context.Context, error) error

	// Decided is told of each decision, once, before the handler runs or the call is
	// refused: to log it, to count it, to write it on a span. Of a stream these are its
	// opening, and each message that Messages charges; but a message that WaitMessages
	// lets wait has no Result, and is told only if it can never pass. What is skipped, free
	// or without a key, and what Failure is told, was not decided.
	Decided func(context.Context, Decision)
}

// Check is one more limit that calls must pass.
type Check struct {
	Limiter *hybrid.Limiter
	Key     Key                               // default that of the ServerOptions
	Cost    func(context.Context, Call) int64 // default that of the ServerOptions. A call of cost 0 is free of this limit
	Name    string                            // default the limiter's name
}

// Messages says whether what a client sends on a stream is charged.
type Messages uint8

const (
	// FreeMessages charges a stream when it opens, and no more.
	FreeMessages Messages = iota

	// DenyMessages charges each message too, the one request of a stream to the client
	// as well. When one is denied, RecvMsg fails with the denial, then and from then on:
	// handlers return such an error.
	DenyMessages

	// WaitMessages charges each message too, and gives it to the handler when it fits,
	// in the order of their coming where streams share a key. Flow control makes the client
	// wait meanwhile, once its windows are full. Not with ServerOptions.More.
	WaitMessages
)

// String returns "FreeMessages", "DenyMessages" or "WaitMessages".
func (m Messages) String() string {
	switch m {
	case FreeMessages:
		return "FreeMessages"
	case DenyMessages:
		return "DenyMessages"
	case WaitMessages:
		return "WaitMessages"
	default:
		return fmt.Sprintf("Messages(%d)", uint8(m))
	}
}

// Bounds of ServerOptions.LongestPushback: clients read milliseconds in 32 bits.
const (
	leastPushback = time.Millisecond
	mostPushback  = 24 * 24 * time.Hour
)

// resolve makes a server of the options.
func (o *ServerOptions) resolve(limiter *hybrid.Limiter) (*server, error) {
	s := &server{
		options:  *o,
		noKey:    cmp.Or(o.NoKey, codes.InvalidArgument),
		pushback: cmp.Or(o.LongestPushback, time.Minute),
	}
	first := Check{Limiter: limiter, Key: o.Key, Cost: o.Cost, Name: o.Name}
	if first.Key.isZero() {
		first.Key = PeerIP(nil)
	}
	if err := s.add("ServerOptions", first); err != nil {
		return nil, err
	}
	for i, c := range o.More {
		if err := s.add(fmt.Sprintf("ServerOptions.More[%d]", i), c); err != nil {
			return nil, err
		}
	}
	var err error
	if s.methods, err = newMethods("ServerOptions.Methods", o.Methods); err != nil {
		return nil, err
	}
	return s, s.validate()
}

func (s *server) validate() error {
	o := &s.options
	switch {
	case o.Headers > httplimit.NoHeaders:
		return invalid("ServerOptions.Headers", o.Headers, "XRateLimit, XRateLimitEpoch, IETF or NoHeaders")
	case o.Messages > WaitMessages:
		return invalid("ServerOptions.Messages", o.Messages, "FreeMessages, DenyMessages or WaitMessages")
	case o.Messages == WaitMessages && len(o.More) > 0:
		return invalid("ServerOptions.Messages", o.Messages, "FreeMessages or DenyMessages with ServerOptions.More")
	case s.pushback < leastPushback || s.pushback > mostPushback:
		return invalid("ServerOptions.LongestPushback", o.LongestPushback, "1ms to 576h")
	}
	return validCode("ServerOptions.NoKey", s.noKey)
}

// add adds a limit that calls must pass, after the first one.
func (s *server) add(field string, c Check) error {
	switch {
	case c.Limiter == nil:
		return invalid(field+": the limiter", "nil", "a limiter")
	case c.Key.err != nil:
		return c.Key.err
	case c.Key.clients:
		return invalid(field+".Key", "Target", "a key of calls that come in")
	case len(s.limits) > 0 && c.Limiter.Node() != s.limits[0].limiter.Node():
		return invalid(field+".Limiter", fmt.Sprintf("%.64q, of another node", c.Limiter.Name()), "limiters of one node")
	}
	l := limit{limiter: c.Limiter, key: c.Key, cost: c.Cost, name: cmp.Or(c.Name, c.Limiter.Name())}
	if c.Key.isZero() {
		l.sharesKey, l.key = true, s.limits[0].key
	}
	if l.cost == nil && len(s.limits) > 0 {
		l.cost = s.limits[0].cost
	}
	var ok bool
	if l.quoted, ok = fields.Quote(l.name); !ok && s.options.Headers == httplimit.IETF {
		return invalid(field+".Name", fmt.Sprintf("%.64q", l.name), "printable ASCII in the IETF fields; the default is the limiter's name")
	}
	s.limits = append(s.limits, l)
	return nil
}

func validCode(field string, c codes.Code) error {
	if c < codes.Canceled || c > codes.Unauthenticated {
		return invalid(field, uint32(c), "codes.Canceled to codes.Unauthenticated")
	}
	return nil
}
