package redisd

import (
	"net"
	"sync"
	"time"
)

// Distance is a longer way to a server: each reply comes later by a fixed time,
// however many are under way.
type Distance struct {
	Addr string

	target string
	delay  time.Duration
	listen net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil once closed
}

// NewDistance opens a way to the server at target.
func NewDistance(target string, delay time.Duration) (*Distance, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &Distance{Addr: l.Addr().String(), target: target, delay: delay, listen: l, conns: make(map[net.Conn]bool)}
	d.wg.Go(d.accept)
	return d, nil
}

// Close breaks all connections.
func (d *Distance) Close() {
	_ = d.listen.Close()
	d.mu.Lock()
	for c := range d.conns {
		_ = c.Close()
	}
	d.conns = nil
	d.mu.Unlock()
	d.wg.Wait()
}

func (d *Distance) accept() {
	for {
		client, err := d.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", d.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		d.join(client, server)
	}
}

// join passes on what comes from either side until one of them ends.
func (d *Distance) join(client, server net.Conn) {
	closeBoth := func() {
		_ = client.Close()
		_ = server.Close()
		d.mu.Lock()
		delete(d.conns, client)
		delete(d.conns, server)
		d.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil {
		_ = client.Close()
		_ = server.Close()
		return
	}
	d.conns[client], d.conns[server] = true, true
	replies := make(chan chunk, 1024)
	d.wg.Go(func() { defer closeBoth(); pass(client, server) })
	d.wg.Go(func() { defer close(replies); d.receive(server, replies) })
	d.wg.Go(func() { defer closeBoth(); deliver(replies, client) })
}

// chunk is a part of a reply and when it arrives.
type chunk struct {
	at    time.Time
	bytes []byte
}

func pass(from, to net.Conn) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (d *Distance) receive(server net.Conn, replies chan<- chunk) {
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		replies <- chunk{time.Now().Add(d.delay), append([]byte(nil), buf[:n]...)}
	}
}

// deliver goes on reading after an error, so that nobody waits for it.
func deliver(replies <-chan chunk, client net.Conn) {
	for c := range replies {
		time.Sleep(time.Until(c.at))
		if _, err := client.Write(c.bytes); err != nil {
			_ = client.Close()
		}
	}
}
