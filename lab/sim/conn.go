package sim

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// dialer connects a link to an embedded server.
func (l *link) dialer(dial func() (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down {
			return nil, errRefused
		}
		store, err := dial()
		if err != nil {
			return nil, err
		}
		c := &linkConn{Conn: store, link: l, epoch: l.epoch, broken: make(chan struct{}), shut: make(chan struct{}),
			out: make(chan message, 1024), in: make(chan message, 1024)}
		l.conns[c] = true
		go c.send()
		go c.fetch()
		return c, nil
	}
}

// linkConn is one connection of a link to an embedded server, with what is on its
// way in both directions. The client that owns it writes a call, then reads the reply.
type linkConn struct {
	net.Conn // the store's end
	link     *link
	epoch    int

	out, in chan message
	broken  chan struct{} // closed: nothing passes any more
	shut    chan struct{} // closed: the client has hung up
	breaks  sync.Once
	shuts   sync.Once

	rest []byte // what the reader has not taken of a message; owned by it

	mu       sync.Mutex
	fate     fate // of the call that arrived last
	kind     uint64
	deadline time.Time
}

// message is bytes on their way.
type message struct {
	at    time.Time // when they arrive
	bytes []byte
}

// Write sends bytes as a network does: it does not wait until they arrive.
func (c *linkConn) Write(p []byte) (int, error) {
	select {
	case <-c.broken:
		return 0, net.ErrClosed
	case c.out <- message{c.link.due(kindOf(p)), bytes.Clone(p)}:
		c.link.meter.sent.Add(int64(len(p)))
		return len(p), nil
	}
}

// send takes calls to the store. A client that gives up and hangs up does not
// call back what it has sent.
func (c *linkConn) send() {
	for {
		select {
		case m := <-c.out:
			time.Sleep(time.Until(m.at))
			if c.link.look(c.epoch) == well {
				c.deliver(m.bytes)
			}
		case <-c.shut:
			if len(c.out) == 0 {
				c.cut()
				return
			}
		case <-c.broken:
			return
		}
	}
}

// accountMark is in the name of every account, and in no other call.
var accountMark = []byte("{}a1:")

// deliver lets a call meet its fate.
func (c *linkConn) deliver(p []byte) {
	f := c.link.meet(bytes.Contains(p, accountMark))
	c.mu.Lock()
	c.fate, c.kind = f, kindOf(p)
	c.mu.Unlock()
	switch f {
	case refused:
		text := []byte(strings.Repeat("-"+loading+"\r\n", commandsIn(p)))
		c.reply(message{c.link.due(kindOf(p) + 1), text})
	case cutBefore:
		c.cut()
	default:
		_, _ = c.Conn.Write(p) // if it fails, whoever reads finds out
	}
}

// commandsIn counts the commands of a call, and so the replies that are expected.
func commandsIn(p []byte) (n int) {
	for i := 0; i < len(p); n++ {
		args, at := number(p, i+1)
		for range args {
			var size int
			size, at = number(p, at+1)
			at += size + 2
		}
		i = at
	}
	return n
}

// number reads digits and the end of their line.
func number(p []byte, at int) (n, end int) {
	for ; at < len(p) && p[at] != '\r'; at++ {
		n = 10*n + int(p[at]-'0')
	}
	return n, at + 2
}

// fetch takes replies from the store.
func (c *linkConn) fetch() {
	var last time.Time
	for buf := make([]byte, 64<<10); ; {
		n, err := c.Conn.Read(buf)
		if err != nil {
			c.cut()
			return
		}
		c.link.meter.received.Add(int64(n))
		c.mu.Lock()
		f, kind := c.fate, c.kind
		c.mu.Unlock()
		switch f {
		case cutAfter: // it replies, so it ran
			c.cut()
			return
		case swallowed:
			continue
		}
		at := c.link.due(kind + 1)
		if at.Before(last) { // a later part of the same reply
			at = last
		}
		last = at
		c.reply(message{at, bytes.Clone(buf[:n])})
	}
}

func (c *linkConn) reply(m message) {
	select {
	case c.in <- m:
	case <-c.broken:
	}
}

// Read returns what has arrived, and waits for something until its deadline.
func (c *linkConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		m, err := c.next()
		if err != nil {
			return 0, err
		}
		if c.link.look(c.epoch) == well {
			c.rest = m.bytes
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next waits until the next message has arrived.
func (c *linkConn) next() (m message, err error) {
	c.mu.Lock()
	deadline := c.deadline
	c.mu.Unlock()
	var late <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case m = <-c.in:
	case <-late:
		return m, os.ErrDeadlineExceeded
	case <-c.broken:
		return m, io.EOF
	}
	arrived := time.NewTimer(time.Until(m.at))
	defer arrived.Stop()
	select {
	case <-arrived.C:
		return m, nil
	case <-late:
		return m, os.ErrDeadlineExceeded
	case <-c.broken:
		return m, io.EOF
	}
}

// SetDeadline is for reads; writes never wait.
func (c *linkConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline is for reads that begin later.
func (c *linkConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return nil
}

// SetWriteDeadline does nothing: writes never wait.
func (c *linkConn) SetWriteDeadline(time.Time) error { return nil }

// Close hangs up.
func (c *linkConn) Close() error {
	c.shuts.Do(func() { close(c.shut) })
	return nil
}

// cut ends the connection: nothing passes any more, in no direction.
func (c *linkConn) cut() {
	c.breaks.Do(func() {
		c.link.mu.Lock()
		delete(c.link.conns, c)
		c.link.mu.Unlock()
		close(c.broken)
		_ = c.Conn.Close()
	})
}

// kindOf tells calls apart, the same way in every run: by the name of their first
// command, and whether they settle. Which accounts share a call may be left to chance.
func kindOf(call []byte) uint64 {
	if bytes.Contains(call, accountMark) {
		return kindOfSettle
	}
	_, size := number(call, 1)
	_, at := number(call, size+1)
	name, _, _ := bytes.Cut(call[min(at, len(call)):], []byte("\r\n"))
	return sumOf(bytes.ToLower(name))
}

var kindOfSettle = sumOf([]byte("settle"))

// sumOf is the FNV-1a hash.
func sumOf(p []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range p {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}
