package hybrid

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// The client's own log of broken connections is what the tests ask for.
func init() { logging.Disable() }

// link is one node's way to the embedded store of a fleet: half a round trip
// each way, and the faults that a test asks for.
type link struct {
	f *fleet

	mu     sync.Mutex
	down   bool    // no connection can be made, and there is none
	faults []fault // of the next settles, one each
	met    int     // settles that met their fault
	harmed bool    // there was a fault at some time
	conns  map[*linkConn]bool
}

// fault is what happens to one call that settles.
type fault int

const (
	none      fault = iota
	refused         // the store says that it is loading
	cutBefore       // the connection breaks before the store sees the call
	cutAfter        // the store runs it, and the connection breaks before the reply
	swallowed       // the store runs it, and the reply never comes
)

var errCut = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

func (l *link) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errCut
	}
	conn, err := l.f.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &linkConn{Conn: conn, link: l, queue: make(chan []byte, 1024), closed: make(chan struct{})}
	l.conns[c] = true
	go c.pass()
	return c, nil
}

// cut breaks all connections and refuses new ones, until it is called with false.
func (l *link) cut(down bool) {
	l.mu.Lock()
	l.down, l.harmed = down, true
	var conns []*linkConn
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		if down {
			_ = c.Close()
		}
	}
}

// inject lets the next settles meet faults, one each.
func (l *link) inject(faults ...fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults, l.harmed = append(l.faults, faults...), true
}

// hits is how many settles met their fault.
func (l *link) hits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.met
}

// waits reports whether a fault has not been met yet.
func (l *link) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.faults) > 0
}

// sound reports whether there never was a fault.
func (l *link) sound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.harmed
}

// accountMark is in every account's name, and in no other call.
var accountMark = []byte("{}a1:")

// judge says what becomes of a call.
func (l *link) judge(call []byte) (next fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) == 0 || !bytes.Contains(call, accountMark) {
		return none
	}
	next, l.faults = l.faults[0], slices.Clone(l.faults[1:])
	l.met++
	return next
}

// linkConn is one connection. The client that owns it writes a call, then reads
// the reply.
type linkConn struct {
	net.Conn
	link  *link
	fate  fault  // of the call that was written last
	reply []byte // what the store seems to have said

	queue  chan []byte // written, and not yet taken by the store
	closed chan struct{}
	once   sync.Once
}

// pass hands on what was written, as the buffers of a network would: the pipe to
// an embedded store has none, and a client that writes a long pipeline would
// wait for a store that waits to write its first replies.
func (c *linkConn) pass() {
	for {
		select {
		case p := <-c.queue:
			if _, err := c.Conn.Write(p); err != nil {
				return // whoever reads finds out
			}
		case <-c.closed:
			return
		}
	}
}

func (c *linkConn) Write(p []byte) (int, error) {
	time.Sleep(c.link.f.rtt() / 2)
	c.fate = c.link.judge(p)
	switch c.fate {
	case refused:
		c.reply = []byte("-LOADING Redis is loading the dataset in memory\r\n")
		return len(p), nil
	case cutBefore:
		_ = c.Close()
		return len(p), nil
	}
	c.link.f.setClock()
	select {
	case c.queue <- bytes.Clone(p):
		return len(p), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *linkConn) Read(p []byte) (int, error) {
	if len(c.reply) > 0 {
		n := copy(p, c.reply)
		c.reply = c.reply[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	switch {
	case err != nil:
		return n, err
	case c.fate == cutAfter: // it replied, so it ran
		_ = c.Close()
		return 0, io.EOF
	case c.fate == swallowed:
		return c.Read(p)
	}
	time.Sleep(c.link.f.rtt() / 2)
	return n, nil
}

func (c *linkConn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// dial connects to the store.
func (f *fleet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if f.mini != nil {
		return f.mini.Dial()
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", f.addr)
}

// setClock shows the store its skewed clock. Without skew it has the nodes'.
func (f *fleet) setClock() {
	if f.skew != 0 {
		f.mini.SetTime(time.Now().Add(f.skew))
	}
}
