package hybridgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// echo is a service with a method of each kind. It needs no generated code: its
// messages are those that come with the protocol buffers.
type echo struct {
	ran   atomic.Int64                                  // calls that reached a handler
	say   func(context.Context, string) (string, error) // nil: says it back
	tired int                                           // a chat ends after so many messages; 0: when its client ends it
}

const (
	say  = "/test.Echo/Say"  // one message each way
	chat = "/test.Echo/Chat" // streams both ways
	list = "/test.Echo/List" // a stream to the client
	sum  = "/test.Echo/Sum"  // a stream from the client
)

var echoDesc = grpc.ServiceDesc{
	ServiceName: "test.Echo",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Say", Handler: handleSay}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Chat", Handler: handleChat, ServerStreams: true, ClientStreams: true},
		{StreamName: "List", Handler: handleList, ServerStreams: true},
		{StreamName: "Sum", Handler: handleSum, ClientStreams: true},
	},
}

func handleSay(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	in := &wrapperspb.StringValue{}
	if err := decode(in); err != nil {
		return nil, err
	}
	e := srv.(*echo)
	run := func(ctx context.Context, req any) (any, error) {
		e.ran.Add(1)
		text := req.(*wrapperspb.StringValue).Value
		if e.say == nil {
			return wrapperspb.String(text), nil
		}
		text, err := e.say(ctx, text)
		return wrapperspb.String(text), err
	}
	if interceptor == nil {
		return run(ctx, in)
	}
	return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: say}, run)
}

func handleChat(srv any, ss grpc.ServerStream) error {
	e := srv.(*echo)
	e.ran.Add(1)
	for n := 0; n == 0 || n != e.tired; n++ {
		in := &wrapperspb.StringValue{}
		switch err := ss.RecvMsg(in); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := ss.SendMsg(in); err != nil {
			return err
		}
	}
	return nil
}

func handleList(srv any, ss grpc.ServerStream) error {
	srv.(*echo).ran.Add(1)
	in := &wrapperspb.StringValue{}
	if err := ss.RecvMsg(in); err != nil {
		return err
	}
	for i := range 3 {
		if err := ss.SendMsg(wrapperspb.String(fmt.Sprint(in.Value, i))); err != nil {
			return err
		}
	}
	return nil
}

func handleSum(srv any, ss grpc.ServerStream) error {
	srv.(*echo).ran.Add(1)
	for n := 0; ; n++ {
		switch err := ss.RecvMsg(&wrapperspb.StringValue{}); {
		case errors.Is(err, io.EOF):
			return ss.SendMsg(wrapperspb.String(fmt.Sprint(n)))
		case err != nil:
			return err
		}
	}
}

// caller is a client of echo.
type caller struct{ *grpc.ClientConn }

// answer is what came of a call.
type answer struct {
	text    string
	header  metadata.MD
	trailer metadata.MD
	err     error
}

func (c *caller) say(ctx context.Context, text string) (a answer) {
	out := &wrapperspb.StringValue{}
	a.err = c.Invoke(ctx, say, wrapperspb.String(text), out, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.text = out.Value
	return a
}

// talk is a stream of echo.
type talk struct{ grpc.ClientStream }

func (c *caller) open(ctx context.Context, method string) (*talk, error) {
	desc := &grpc.StreamDesc{ServerStreams: method != sum, ClientStreams: method != list}
	cs, err := c.NewStream(ctx, desc, method)
	return &talk{cs}, err
}

func (t *talk) send(text string) error { return t.SendMsg(wrapperspb.String(text)) }

func (t *talk) receive() (string, error) {
	out := &wrapperspb.StringValue{}
	err := t.RecvMsg(out)
	return out.Value, err
}
