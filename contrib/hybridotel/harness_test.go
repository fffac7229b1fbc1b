package hybridotel

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// The client's own log of broken connections is what the tests ask for.
func init() { logging.Disable() }

// world is a node on an embedded Redis, in the virtual time of a synctest bubble.
type world struct {
	t     *testing.T
	mini  *miniredis.Miniredis
	rdb   *redis.Client
	node  *hybrid.Node
	delay atomic.Int64 // ns, of each call to Redis
}

func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	redistest.NeedMini(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, mini: miniredis.NewMiniRedis()}
		w.delay.Store(int64(600 * time.Microsecond))
		w.mini.ClockTTL(true)
		w.rdb = redis.NewClient(&redis.Options{
			Addr:                     "127.0.0.1:6379", // no name, whose look-up would leave the bubble
			Dialer:                   w.dial,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		w.node = w.another()
		test(w)
		_ = w.node.Close() // some tests have broken its Redis
		_ = w.rdb.Close()
		time.Sleep(2 * time.Second) // a client that could not dial tries each second, until it sees that it is closed
		w.mini.Close()
	})
}

// another makes one more node on the same Redis.
func (w *world) another() *hybrid.Node {
	w.t.Helper()
	node, err := hybrid.New(w.rdb, &hybrid.Options{Logger: silent})
	if err != nil {
		w.t.Fatal(err)
	}
	return node
}

var silent = slog.New(slog.DiscardHandler)

func (w *world) limiter(name string, l hybrid.Limit, opts *hybrid.LimiterOptions) *hybrid.Limiter {
	w.t.Helper()
	lim, err := w.node.Limiter(name, l, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return lim
}

// breakRedis makes each call fail, as a server that is starting does.
func (w *world) breakRedis() { w.mini.SetError("LOADING Redis is loading the dataset in memory") }

func (w *world) mendRedis() { w.mini.SetError("") }

// ask sends requests of one token, one each time that a span passes, and returns their
// results.
func (w *world) ask(l *hybrid.Limiter, key string, times int, every time.Duration) []hybrid.Result {
	w.t.Helper()
	var results []hybrid.Result
	for range times {
		r, err := l.Allow(context.Background(), key)
		if err != nil {
			w.t.Fatal(err)
		}
		results = append(results, r)
		time.Sleep(every)
	}
	return results
}

// dial connects to the embedded Redis.
func (w *world) dial(context.Context, string, string) (net.Conn, error) {
	conn, err := w.mini.Dial()
	if err != nil {
		return nil, err
	}
	c := &pipe{Conn: conn, delay: &w.delay, queue: make(chan []byte, 1024), closed: make(chan struct{})}
	go c.pass()
	return c, nil
}

// pipe is a connection with a buffer, as networks have it: without one, a client
// that writes many calls waits for a server that waits to write its first reply.
type pipe struct {
	net.Conn
	delay  *atomic.Int64
	queue  chan []byte
	closed chan struct{}
	once   sync.Once
}

func (c *pipe) pass() {
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

func (c *pipe) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(c.delay.Load()))
	select {
	case c.queue <- bytes.Clone(p):
		return len(p), nil
	case <-c.closed:
		return 0, io.ErrClosedPipe
	}
}

func (c *pipe) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
