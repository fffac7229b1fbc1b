package debugui

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
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

// The client's own log of broken connections is what some tests ask for.
func init() { logging.Disable() }

var silent = slog.New(slog.DiscardHandler)

// world is a node on an embedded Redis, in the virtual time of a synctest bubble.
type world struct {
	t    *testing.T
	mini *miniredis.Miniredis
	node *hybrid.Node
}

func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	redistest.NeedMini(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, mini: miniredis.NewMiniRedis()}
		w.mini.ClockTTL(true)
		rdb := redis.NewClient(&redis.Options{
			Addr:                     "127.0.0.1:6379", // no name, whose look-up would leave the bubble
			Dialer:                   w.dial,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		var err error
		if w.node, err = hybrid.New(rdb, &hybrid.Options{Logger: silent}); err != nil {
			t.Fatal(err)
		}
		test(w)
		_ = w.node.Close() // some tests have broken its Redis
		_ = rdb.Close()
		time.Sleep(2 * time.Second) // a client that could not dial tries each second, until it sees that it is closed
		w.mini.Close()
	})
}

// breakRedis makes each call fail, as a server that is starting does; "" mends it.
func (w *world) breakRedis(reply string) { w.mini.SetError(reply) }

func (w *world) limiter(name string, l hybrid.Limit, opts *hybrid.LimiterOptions) *hybrid.Limiter {
	w.t.Helper()
	lim, err := w.node.Limiter(name, l, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return lim
}

// handler is the page of the world's node.
func (w *world) handler(opts *Options) http.Handler {
	w.t.Helper()
	h, err := Handler(w.node, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// use sends so many requests of one token.
func use(t testing.TB, l *hybrid.Limiter, key string, requests int) {
	t.Helper()
	for range requests {
		if _, err := l.Allow(context.Background(), key); err != nil {
			t.Fatal(err)
		}
	}
}

// send sends one request. Headers are given as name and value in turn.
func send(h http.Handler, method, target string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header[headers[i]] = []string{headers[i+1]} // as it is, also where it is no canonical name
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result()
}

// reported is the report as a program gets it.
func reported(t testing.TB, h http.Handler) (r report) {
	t.Helper()
	decode(t, send(h, http.MethodGet, "/?format=json"), http.StatusOK, &r)
	return r
}

// decode reads the answer to a request for data.
func decode(t testing.TB, resp *http.Response, status int, into any) {
	t.Helper()
	body := bodyOf(t, resp)
	if resp.StatusCode != status || resp.Header.Get("Content-Type") != jsonType {
		t.Fatalf("status %d, %s, want %d: %s", resp.StatusCode, resp.Header.Get("Content-Type"), status, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

func bodyOf(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// find returns the item of a list that a test asks for.
func find[T any](t testing.TB, list []T, what string, is func(T) bool) T {
	t.Helper()
	for _, one := range list {
		if is(one) {
			return one
		}
	}
	t.Fatalf("no %s in %+v", what, list)
	panic("unreachable")
}

func (w *world) dial(context.Context, string, string) (net.Conn, error) {
	conn, err := w.mini.Dial()
	if err != nil {
		return nil, err
	}
	c := &pipe{Conn: conn, queue: make(chan []byte, 1024), closed: make(chan struct{})}
	go c.pass()
	return c, nil
}

// pipe is a connection with a buffer, as networks have it: without one, a client
// that writes many calls waits for a server that waits to write its first reply.
type pipe struct {
	net.Conn
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
	time.Sleep(600 * time.Microsecond) // a call takes some time
	select {
	case c.queue <- bytes.Clone(p):
		return len(p), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *pipe) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
