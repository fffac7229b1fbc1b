package hybridgrpc

import (
	"errors"
	"sync"

	"google.golang.org/grpc"

	"github.com/hybridlimit/hybrid"
)

// meter runs a stream's handler with messages that are charged. The trailer shows
// the verdict that was last.
func (s *server) meter(srv any, ss grpc.ServerStream, call Call, keys []string, opening verdict, handler grpc.StreamHandler) error {
	ctx := ss.Context()
	m := &meteredStream{ServerStream: ss, server: s, call: call, keys: keys, last: opening}
	if s.options.InHeader {
		if md := s.fields(ctx, &opening); md != nil {
			_ = ss.SetHeader(md) // the handler has not run, so no header is sent
		}
	}
	_ = s.judge(ctx, call, &opening) // it passes
	err := handler(srv, m)
	m.mu.Lock()
	last := m.last
	m.mu.Unlock()
	if md := s.fields(ctx, &last); md != nil && (!last.result.Allowed || !s.options.InHeader) {
		ss.SetTrailer(md)
	}
	return err
}

// meteredStream is a stream whose messages from the client are charged.
type meteredStream struct {
	grpc.ServerStream
	server *server
	call   Call
	keys   []string // written by RecvMsg, which is not called from two goroutines at once

	mu     sync.Mutex // a handler may return while a goroutine of its own is in RecvMsg
	last   verdict
	denied error // of a message, since then of each RecvMsg
}

// RecvMsg receives a message that the limits admit. With an error, what was received
// is not the handler's.
func (m *meteredStream) RecvMsg(msg any) error {
	m.mu.Lock()
	denied := m.denied
	m.mu.Unlock()
	if denied != nil {
		return denied
	}
	if err := m.ServerStream.RecvMsg(msg); err != nil {
		return err
	}
	v, err := m.charge(msg)
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.limit != nil {
		m.last = v
	}
	m.denied = err
	return err
}

// charge decides a message. It fails with the status of its refusal.
func (m *meteredStream) charge(msg any) (verdict, error) {
	ctx, call := m.Context(), m.call
	call.Request = msg
	var v verdict
	var err error
	// In shadow mode nothing waits, and WaitN would not tell what it let pass.
	if m.server.options.Messages == WaitMessages && !m.server.limits[0].limiter.Shadow() {
		v, err = m.await(call)
	} else {
		v, err = m.server.decide(ctx, call, m.keys)
	}
	if err != nil {
		return verdict{}, m.server.failed(ctx, err)
	}
	v.message = true
	return v, m.server.judge(ctx, call, &v)
}

// await decides a message as soon as it fits. One that never fits is denied.
func (m *meteredStream) await(call Call) (verdict, error) {
	ctx, l := m.Context(), &m.server.limits[0]
	cost := l.costOf(ctx, call)
	if cost == 0 {
		return free, nil
	}
	key, err := m.server.keyOf(ctx, call, m.keys, 0)
	if err != nil {
		return verdict{}, err
	}
	err = l.limiter.WaitN(ctx, key, cost)
	if errors.Is(err, hybrid.ErrExceedsBurst) {
		never := hybrid.Result{Limit: l.limiter.Limit(key).Burst(), RetryAfter: hybrid.Never, Path: hybrid.PathExact}
		return verdict{limit: l, key: key, result: never}, nil
	}
	return free, err // what remains is not known: the opening's verdict stays
}
