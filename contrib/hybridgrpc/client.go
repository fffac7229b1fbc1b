package hybridgrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
)

// ClientOptions are the settings of UnaryClient and StreamClient, which can share them.
// The zero value of each field means its default. Functions are called from any
// goroutine.
type ClientOptions struct {
	// Key finds what a call is counted under; default Target(): all calls of one
	// downstream together.
	Key Key

	// Cost is how many tokens a call takes; default 1 for each. A call of cost 0 is
	// free: it passes without asking.
	Cost func(context.Context, Call) int64

	// Methods are the methods that are limited: "/package.Service/Method", or all of a
	// service with "/package.Service/*"; default all. Others pass without asking.
	Methods []string

	// Skip lets a call pass without asking.
	Skip func(context.Context, Call) bool

	// NoWait fails at once what the limit does not admit now, with the status that a
	// server's interceptor would give it.
	NoWait bool

	// Messages charges each message that is sent on a stream too. By default a stream
	// is charged when it opens, and no more.
	Messages bool

	// NoKey is the code of a call that has no key; any but OK, default InvalidArgument.
	NoKey codes.Code
}

// UnaryClient makes an interceptor that lets a client's unary calls wait until a limiter
// admits them; calls of one key in the order in which they came. Options are copied; nil
// means all defaults: each downstream has the limit for itself.
//
// A call fails with DeadlineExceeded at once if its deadline comes before its turn, and
// with ResourceExhausted if it costs more than the limit. It is charged once, however
// often gRPC retries it. With the error errors.Is finds context.DeadlineExceeded,
// context.Canceled, hybrid.ErrExceedsBurst, hybrid.ErrClosed or ErrNoKey. Several
// interceptors in a chain wait one after the other.
//
// It fails with hybrid.ErrInvalidOption.
func UnaryClient(limiter *hybrid.Limiter, opts *ClientOptions) (grpc.UnaryClientInterceptor, error) {
	c, err := newClient(limiter, opts)
	if err != nil {
		return nil, err
	}
	return c.unary, nil
}

// StreamClient is UnaryClient for streams: they wait before they open, and by
// ClientOptions.Messages before each message that is sent.
func StreamClient(limiter *hybrid.Limiter, opts *ClientOptions) (grpc.StreamClientInterceptor, error) {
	c, err := newClient(limiter, opts)
	if err != nil {
		return nil, err
	}
	return c.stream, nil
}

// client is what the calls of an interceptor share. Nothing in it changes.
type client struct {
	options ClientOptions // complete
	limiter *hybrid.Limiter
	methods methods
}

func newClient(limiter *hybrid.Limiter, opts *ClientOptions) (*client, error) {
	c := &client{limiter: limiter}
	if opts != nil {
		c.options = *opts
	}
	o := &c.options
	if o.Key.isZero() {
		o.Key = Target()
	}
	o.NoKey = cmp.Or(o.NoKey, codes.InvalidArgument)
	switch {
	case limiter == nil:
		return nil, invalid("ClientOptions: the limiter", "nil", "a limiter")
	case o.Key.err != nil:
		return nil, o.Key.err
	}
	var err error
	if c.methods, err = newMethods("ClientOptions.Methods", o.Methods); err != nil {
		return nil, err
	}
	return c, validCode("ClientOptions.NoKey", o.NoKey)
}

func (c *client) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	call := Call{Method: method, Request: req, Target: target(cc)}
	if !c.passes(ctx, call) {
		if err := c.admit(ctx, call, ""); err != nil {
			return err
		}
	}
	return invoker(ctx, method, req, reply, cc, opts...)
}

func target(cc *grpc.ClientConn) string {
	if cc == nil { // a test of an interceptor alone
		return ""
	}
	return cc.Target()
}

// passes reports whether a call is not ours to decide.
func (c *client) passes(ctx context.Context, call Call) bool {
	return !c.methods.has(call.Method) || c.options.Skip != nil && c.options.Skip(ctx, call)
}

func (c *client) costOf(ctx context.Context, call Call) int64 {
	if c.options.Cost == nil {
		return 1
	}
	return c.options.Cost(ctx, call)
}

// admit waits until a call passes. key is its key if that is known. It fails with a
// status.
func (c *client) admit(ctx context.Context, call Call, key string) error {
	cost := c.costOf(ctx, call)
	if cost == 0 {
		return nil
	}
	if key == "" {
		var err error
		if key, err = c.options.Key.of(ctx, call); err != nil {
			return failure(err, c.options.NoKey)
		}
	}
	if c.options.NoWait {
		return c.ask(ctx, call, key, cost)
	}
	switch err := c.limiter.WaitN(ctx, key, cost); {
	case err == nil:
		return nil
	case errors.Is(err, hybrid.ErrExceedsBurst):
		never := hybrid.Result{Limit: c.limiter.Limit(key).Burst(), RetryAfter: hybrid.Never, Path: hybrid.PathExact}
		return c.refuse(call, key, never, err)
	case errors.Is(err, context.DeadlineExceeded):
		text := fmt.Sprintf("limit %s admits the call after its deadline only", inText(c.limiter.Name()))
		return &refusal{status: status.New(codes.DeadlineExceeded, text), cause: err}
	default:
		return failure(err, c.options.NoKey)
	}
}

// ask is admit without waiting.
func (c *client) ask(ctx context.Context, call Call, key string, cost int64) error {
	res, err := c.limiter.AllowN(ctx, key, cost)
	switch {
	case err != nil:
		return failure(err, c.options.NoKey)
	case res.Allowed:
		return nil
	case res.RetryAfter == hybrid.Never:
		err = hybrid.ErrExceedsBurst
	}
	return c.refuse(call, key, res, err)
}

// refuse is the error of a call that the limit denies.
func (c *client) refuse(call Call, key string, res hybrid.Result, cause error) error {
	name := c.limiter.Name()
	d := Decision{Result: res, Limiter: c.limiter, Name: name, Key: key, Method: call.Method, Code: codeOf(c.limiter, &res)}
	return &refusal{status: denial(&d, name), cause: cause}
}
