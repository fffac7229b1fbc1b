package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// wire is a node's way to Redis, which can be cut.
type wire struct {
	mu    sync.Mutex
	off   bool
	conns map[net.Conn]bool
}

func newWire() *wire { return &wire{conns: map[net.Conn]bool{}} }

var errCut = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("the wire is cut")}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.off {
		_ = conn.Close()
		return nil, errCut
	}
	w.conns[conn] = true
	return &end{conn, w}, nil
}

// cut breaks all connections and lets none be made, until it is called with false.
func (w *wire) cut(off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = off
	if !off {
		return
	}
	for conn := range w.conns {
		_ = conn.Close()
		delete(w.conns, conn)
	}
}

// end is a connection that the wire forgets when it is closed.
type end struct {
	net.Conn
	wire *wire
}

func (e *end) Close() error {
	e.wire.mu.Lock()
	delete(e.wire.conns, e.Conn)
	e.wire.mu.Unlock()
	return e.Conn.Close()
}
