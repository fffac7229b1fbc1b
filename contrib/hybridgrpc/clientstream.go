package hybridgrpc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
)

func (c *client) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	call := Call{Method: method, Target: target(cc)}
	if c.passes(ctx, call) {
		return streamer(ctx, desc, cc, method, opts...)
	}
	if err := c.admit(ctx, call, ""); err != nil {
		return nil, err
	}
	if !c.options.Messages {
		return streamer(ctx, desc, cc, method, opts...)
	}
	key, err := c.options.Key.of(ctx, call)
	if err != nil {
		return nil, failure(err, c.options.NoKey)
	}
	ctx, abort := context.WithCancel(ctx)
	cs, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		abort()
		return nil, err
	}
	return &pacedStream{ClientStream: cs, client: c, call: call, key: key, ctx: ctx, abort: abort, one: !desc.ServerStreams}, nil
}

// pacedStream is a stream of a client that sends as the limiter allows.
type pacedStream struct {
	grpc.ClientStream
	client *client
	call   Call
	key    string
	one    bool // there is one answer, and the stream ends with it

	ctx   context.Context // of the stream: asking it for its own would end gRPC's retries
	abort context.CancelFunc
	ended atomic.Bool // RecvMsg has seen the end

	// denied is why SendMsg aborted the stream. It is written before abort, so that
	// whoever is in RecvMsg finds it there when the stream ends.
	denied atomic.Pointer[error]
}

// SendMsg sends a message as soon as the limiter admits it. When it never does, or the
// stream's deadline comes before, the stream is aborted.
func (p *pacedStream) SendMsg(msg any) error {
	call := p.call
	call.Request = msg
	if p.ended.Load() {
		return p.ClientStream.SendMsg(msg) // which fails as it should
	}
	err := p.client.admit(p.ctx, call, p.key)
	if err == nil || p.ended.Load() {
		return p.ClientStream.SendMsg(msg)
	}
	p.denied.Store(&err)
	p.abort()
	return err
}

// RecvMsg fails with what SendMsg failed with, where that has aborted the stream.
func (p *pacedStream) RecvMsg(msg any) error {
	err := p.ClientStream.RecvMsg(msg)
	if err == nil && !p.one {
		return nil
	}
	p.ended.Store(true)
	p.abort() // frees what the context holds, and wakes a SendMsg that waits
	if denied := p.denied.Load(); err != nil && denied != nil {
		return *denied
	}
	return err
}
