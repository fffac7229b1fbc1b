package redistest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The client's own log of broken connections is what the tests ask for.
func init() { logging.Disable() }

// Link is the way of clients to a store: half a round trip each way, and the
// faults that a test asks for. It needs no port, so it works in a bubble too.
type Link struct {
	dial func() (net.Conn, error)

	mu     sync.Mutex
	rtt    func() time.Duration
	down   bool    // no connection can be made, and there is none
	faults []Fault // of the next settles, one each
	met    int     // settles that met their fault
	harmed bool    // there was a fault at some time
	conns  map[*linkConn]bool
}

// Fault is what happens to one call that settles.
type Fault int

const (
	None      Fault = iota
	Refused         // the store says that it is loading
	CutBefore       // the connection breaks before the store sees the call
	CutAfter        // the store runs it, and the connection breaks before the reply
	Swallowed       // the store runs it, and the reply never comes
)

// Loading is the error of a server that is starting.
const Loading = "LOADING Redis is loading the dataset in memory"

// NewLink makes a link of 600 µs to the store that is dialled so. Without a delay
// waits in a bubble would end a rounding after the whole second.
func NewLink(dial func() (net.Conn, error)) *Link {
	return &Link{dial: dial, rtt: func() time.Duration { return 600 * time.Microsecond }, conns: map[*linkConn]bool{}}
}

// Client returns a client at the end of the link, closed when the test ends.
func (l *Link) Client(t testing.TB) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:6379", // no name, whose look-up would leave a bubble
		Dialer: l.connect,
		// Asking for them holds a mutex while a connection is made, and virtual
		// time stands still while somebody waits for a mutex.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// RTT sets how long round trips take from now on. Each half of one asks anew.
func (l *Link) RTT(rtt func() time.Duration) { l.set(func() { l.rtt = rtt }) }

// Cut breaks all connections and refuses new ones, until it is called with false.
func (l *Link) Cut(down bool) {
	var broken []*linkConn
	l.set(func() {
		l.down, l.harmed = down, true
		if down {
			broken = slices.Collect(maps.Keys(l.conns))
		}
	})
	for _, c := range broken {
		_ = c.Close()
	}
}

// Inject lets the next settles meet faults, one each.
func (l *Link) Inject(faults ...Fault) {
	l.set(func() { l.faults, l.harmed = append(l.faults, faults...), true })
}

// Mend takes back faults that no settle has met.
func (l *Link) Mend() { l.set(func() { l.faults = nil }) }

func (l *Link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// Hits is how many settles met their fault.
func (l *Link) Hits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.met
}

// Waits reports whether a fault has not been met yet.
func (l *Link) Waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.faults) > 0
}

// Sound reports whether there never was a fault.
func (l *Link) Sound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.harmed
}

var errCut = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

func (l *Link) connect(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errCut
	}
	conn, err := l.dial()
	if err != nil {
		return nil, err
	}
	c := &linkConn{Conn: conn, link: l, queue: make(chan []byte, 1024), closed: make(chan struct{})}
	l.conns[c] = true
	go c.pass()
	return c, nil
}

// travel lets half a round trip pass.
func (l *Link) travel() {
	l.mu.Lock()
	rtt := l.rtt
	l.mu.Unlock()
	time.Sleep(rtt() / 2) // without the lock, or virtual time would stand still
}

// accountMark is in every account's name, and in no other call.
var accountMark = []byte("{}a1:")

// judge says what becomes of a call.
func (l *Link) judge(call []byte) (next Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) == 0 || !bytes.Contains(call, accountMark) {
		return None
	}
	next, l.faults = l.faults[0], slices.Clone(l.faults[1:])
	l.met++
	return next
}

// linkConn is one connection. The client that owns it writes a call, then reads
// the reply.
type linkConn struct {
	net.Conn
	link  *Link
	fate  Fault  // of the call that was written last
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
	c.link.travel()
	c.fate = c.link.judge(p)
	switch c.fate {
	case Refused:
		c.reply = []byte("-" + Loading + "\r\n")
		return len(p), nil
	case CutBefore:
		_ = c.Close()
		return len(p), nil
	}
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
	case c.fate == CutAfter: // it replied, so it ran
		_ = c.Close()
		return 0, io.EOF
	case c.fate == Swallowed:
		return c.Read(p)
	}
	c.link.travel()
	return n, nil
}

func (c *linkConn) Close() error {
	c.link.set(func() { delete(c.link.conns, c) })
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
