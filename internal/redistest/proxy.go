package redistest

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a server and misbehaves on demand. It
// looks at what arrives in one read as one request, which holds for requests
// below 64 KiB on loopback.
type Proxy struct {
	Addr string

	target string
	wg     sync.WaitGroup

	mu     sync.Mutex
	listen net.Listener  // nil while connections are refused
	delay  time.Duration // before each reply is passed on
	hole   bool          // nothing is passed on
	fault  fault
	hits   int
	conns  map[net.Conn]bool
}

// fault happens to the next few requests that contain a text.
type fault struct {
	left   int
	text   string
	action action
}

type action int

const (
	pass      action = iota
	cutBefore        // the connection is closed, the server never sees the request
	cutAfter         // the server executes it; when it replies, the connection is closed
	swallow          // the server executes it; the reply never arrives, the connection stays
	tear             // the server executes it; half of the reply arrives, then the connection is reset
)

// NewProxy starts a proxy for the server at target until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listen: l, conns: make(map[net.Conn]bool)}
	p.wg.Go(func() { p.accept(l) })
	t.Cleanup(p.close)
	return p
}

// Delay holds each reply back for d.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// BlackHole makes the proxy accept everything and answer nothing.
func (p *Proxy) BlackHole(on bool) { p.set(func() { p.hole = on }) }

// CutBefore closes the connection on the next n requests that contain text; the server does not see them.
func (p *Proxy) CutBefore(n int, text string) { p.set(func() { p.fault = fault{n, text, cutBefore} }) }

// CutAfter lets the server execute the next n requests that contain text, and closes the connection instead of
// passing the reply on.
func (p *Proxy) CutAfter(n int, text string) { p.set(func() { p.fault = fault{n, text, cutAfter} }) }

// Swallow lets the server execute the next n requests that contain text, and never passes a reply on.
func (p *Proxy) Swallow(n int, text string) { p.set(func() { p.fault = fault{n, text, swallow} }) }

// Tear lets the server execute the next n requests that contain text, passes half of what it replies on, and resets
// the connection.
func (p *Proxy) Tear(n int, text string) { p.set(func() { p.fault = fault{n, text, tear} }) }

// Refuse resets all connections and lets none be made, as if nobody listened on the port; Accept ends that.
func (p *Proxy) Refuse() {
	p.set(func() {
		if p.listen != nil {
			_ = p.listen.Close()
			p.listen = nil
		}
	})
	p.Reset()
}

// Accept listens again on the same port.
func (p *Proxy) Accept() error {
	l, err := net.Listen("tcp", p.Addr)
	if err != nil {
		return err
	}
	p.set(func() { p.listen = l })
	p.wg.Go(func() { p.accept(l) })
	return nil
}

// Reset breaks all connections that there are.
func (p *Proxy) Reset() {
	p.set(func() {
		for c := range p.conns {
			reset(c)
		}
	})
}

// reset closes a connection so that its other end sees a reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Hits is how many requests met a fault.
func (p *Proxy) Hits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *Proxy) accept(listen net.Listener) {
	for {
		client, err := listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.set(func() { p.conns[client], p.conns[server] = true, true })
		l := &link{proxy: p, client: client, server: server}
		p.wg.Go(l.requests)
		p.wg.Go(l.replies)
	}
}

func (p *Proxy) close() {
	p.Refuse()
	p.wg.Wait()
}

// judge says what becomes of a request.
func (p *Proxy) judge(request []byte) action {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.hole:
		return swallow
	case p.fault.left == 0 || !bytes.Contains(request, []byte(p.fault.text)):
		return pass
	}
	p.fault.left--
	p.hits++
	return p.fault.action
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	mu   sync.Mutex
	fate action // of the replies from now on
}

func (l *link) close() {
	l.proxy.set(func() {
		delete(l.proxy.conns, l.client)
		delete(l.proxy.conns, l.server)
	})
	_ = l.client.Close()
	_ = l.server.Close()
}

func (l *link) requests() {
	defer l.close()
	buf := make([]byte, 1<<16)
	for {
		n, err := l.client.Read(buf)
		if err != nil {
			return
		}
		a := l.proxy.judge(buf[:n])
		if a == cutBefore {
			return
		}
		if a != pass {
			l.mu.Lock()
			l.fate = a
			l.mu.Unlock()
		}
		if _, err := l.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *link) replies() {
	defer l.close()
	buf := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		fate := l.fate
		l.mu.Unlock()
		switch fate {
		case cutAfter:
			return
		case tear:
			_, _ = l.client.Write(buf[:n/2]) // it may be gone already
			reset(l.client)
			return
		case swallow:
			continue
		}
		l.proxy.mu.Lock()
		delay := l.proxy.delay
		l.proxy.mu.Unlock()
		if delay > 0 {
			time.Sleep(delay)
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}
