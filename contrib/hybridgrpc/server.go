package hybridgrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/hybridlimit/hybrid"
)

// UnaryServer makes an interceptor that lets unary calls pass as far as a limiter
// allows. Options are copied; nil means all defaults: each remote address has the limit
// for itself.
//
// It fails with hybrid.ErrInvalidOption.
func UnaryServer(limiter *hybrid.Limiter, opts *ServerOptions) (grpc.UnaryServerInterceptor, error) {
	s, err := newServer(limiter, opts)
	if err != nil {
		return nil, err
	}
	return s.unary, nil
}

// StreamServer is UnaryServer for streams: it decides when a stream opens, before the
// handler runs, and by ServerOptions.Messages each message too.
func StreamServer(limiter *hybrid.Limiter, opts *ServerOptions) (grpc.StreamServerInterceptor, error) {
	s, err := newServer(limiter, opts)
	if err != nil {
		return nil, err
	}
	return s.stream, nil
}

func newServer(limiter *hybrid.Limiter, opts *ServerOptions) (*server, error) {
	if opts == nil {
		opts = &ServerOptions{}
	}
	return opts.resolve(limiter)
}

// unary decides a unary call, and shows the limit before the handler runs.
func (s *server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	call := Call{Method: info.FullMethod, Request: req}
	if s.passes(ctx, call) {
		return handler(ctx, req)
	}
	var room [4]string
	v, err := s.decide(ctx, call, s.noKeys(room[:]))
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	// Both fail only where there is no call to a server: in a test of an interceptor alone.
	switch md := s.fields(ctx, &v); {
	case md == nil:
	case v.result.Allowed && s.options.InHeader:
		_ = grpc.SetHeader(ctx, md)
	default:
		_ = grpc.SetTrailer(ctx, md)
	}
	if err := s.judge(ctx, call, &v); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// stream decides a stream when it opens.
func (s *server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, call := ss.Context(), Call{Method: info.FullMethod}
	if s.passes(ctx, call) {
		return handler(srv, ss)
	}
	keys := make([]string, len(s.limits)) // a metered stream keeps them
	v, err := s.decide(ctx, call, keys)
	if err != nil {
		return s.failed(ctx, err)
	}
	if v.result.Allowed && s.options.Messages != FreeMessages {
		return s.meter(srv, ss, call, keys, v, handler)
	}
	switch md := s.fields(ctx, &v); {
	case md == nil:
	case v.result.Allowed && s.options.InHeader:
		_ = ss.SetHeader(md) // the handler has not run, so no header is sent
	default:
		ss.SetTrailer(md)
	}
	if err := s.judge(ctx, call, &v); err != nil {
		return err
	}
	return handler(srv, ss)
}

// judge tells Decided what was decided of a call. It is the error of one that was
// denied.
func (s *server) judge(ctx context.Context, call Call, v *verdict) error {
	if v.limit == nil { // free
		return nil
	}
	if s.options.Decided != nil {
		s.options.Decided(ctx, v.decision(call))
	}
	if v.result.Allowed {
		return nil
	}
	return s.denied(ctx, call, v)
}
