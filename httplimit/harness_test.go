package httplimit

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// world is a node on an embedded Redis, in the virtual time of a synctest
// bubble, which begins at midnight UTC.
type world struct {
	t     *testing.T
	mini  *miniredis.Miniredis
	rdb   *redis.Client
	node  *hybrid.Node
	delay atomic.Int64 // ns, of each call to Redis
	more  []*world     // further nodes on the same Redis
}

func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	redistest.NeedMini(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, mini: miniredis.NewMiniRedis()}
		w.delay.Store(int64(600 * time.Microsecond)) // with none, waits would end a rounding after the whole second
		w.mini.ClockTTL(true)
		w.start()
		test(w)
		for _, one := range append(w.more, w) {
			_ = one.node.Close() // some tests have broken its Redis
			_ = one.rdb.Close()
		}
		time.Sleep(2 * time.Second) // a client that could not dial tries each second, until it sees that it is closed
		w.mini.Close()
	})
}

func (w *world) start() {
	w.t.Helper()
	w.rdb = redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379", // no name, whose look-up would leave the bubble
		Dialer:                   w.dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	var err error
	if w.node, err = hybrid.New(w.rdb, &hybrid.Options{Logger: silent}); err != nil {
		w.t.Fatal(err)
	}
}

// another is one more node on the same Redis.
func (w *world) another() *world {
	w.t.Helper()
	other := &world{t: w.t, mini: w.mini}
	other.start()
	w.more = append(w.more, other)
	return other
}

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// breakRedis makes each call fail, as a server that is starting does.
func (w *world) breakRedis() { w.mini.SetError("LOADING Redis is loading the dataset in memory") }

func (w *world) limiter(name string, l hybrid.Limit, opts *hybrid.LimiterOptions) *hybrid.Limiter {
	w.t.Helper()
	lim, err := w.node.Limiter(name, l, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return lim
}

// strict is a limiter that admits exactly its limit.
func (w *world) strict(name string, l hybrid.Limit) *hybrid.Limiter {
	w.t.Helper()
	return w.limiter(name, l, &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
}

func (w *world) serve(l *hybrid.Limiter, opts *Options) http.Handler {
	w.t.Helper()
	return serve(w.t, l, opts)
}

// serve is a handler that says "served" behind a limiter.
func serve(t testing.TB, l *hybrid.Limiter, opts *Options) http.Handler {
	t.Helper()
	mw, err := New(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return mw(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
}

// call sends one request.
func call(h http.Handler, change ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/items/1", nil)
	for _, c := range change {
		c(r)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result()
}

// with sets a request header.
func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// from sets where a request comes from.
func from(addr string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = addr }
}

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wantStatus fails the test unless a response has a status and headers, given
// as name and value in turn. A value of "" means that the header is absent.
func wantStatus(t *testing.T, resp *http.Response, status int, headers ...string) {
	t.Helper()
	if resp.StatusCode != status {
		t.Errorf("status %d, want %d; headers %v", resp.StatusCode, status, resp.Header)
	}
	for i := 0; i < len(headers); i += 2 {
		name, want := headers[i], headers[i+1]
		got, there := resp.Header[http.CanonicalHeaderKey(name)]
		switch {
		case want == "" && there:
			t.Errorf("%s is %q, want none", name, got)
		case want != "" && (len(got) != 1 || got[0] != want):
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
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
		return 0, net.ErrClosed
	}
}

func (c *pipe) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
