package hybridecho

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// world is a node on an embedded Redis that answers however busy the machine is.
type world struct {
	t    *testing.T
	mini *miniredis.Miniredis
	node *hybrid.Node
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, mini: redistest.Mini(t)}
	rdb := redis.NewClient(&redis.Options{Addr: w.mini.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	var err error
	if w.node, err = hybrid.New(rdb, &hybrid.Options{Logger: slog.New(slog.DiscardHandler), StoreTimeout: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.node.Close() })
	return w
}

// limiter admits exactly its limit.
func (w *world) limiter(name string, l hybrid.Limit) *hybrid.Limiter {
	w.t.Helper()
	return w.limiterWith(name, l, hybrid.LimiterOptions{})
}

func (w *world) limiterWith(name string, l hybrid.Limit, opts hybrid.LimiterOptions) *hybrid.Limiter {
	w.t.Helper()
	opts.Accuracy = hybrid.Strict
	lim, err := w.node.Limiter(name, l, &opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return lim
}

func (w *world) limit(l *hybrid.Limiter, opts *httplimit.Options) echo.MiddlewareFunc {
	w.t.Helper()
	limit, err := New(l, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return limit
}

// client calls a server on a real port.
type client struct {
	t   *testing.T
	url string
}

func (w *world) serve(h http.Handler) *client {
	srv := httptest.NewServer(h)
	w.t.Cleanup(srv.Close)
	return &client{w.t, srv.URL}
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

// get sends a request with headers given as "Name: value".
func (c *client) get(path string, headers ...string) answer {
	c.t.Helper()
	return c.send(http.MethodGet, path, "", headers...)
}

func (c *client) send(method, path, body string, headers ...string) answer {
	c.t.Helper()
	r, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{resp, string(text)}
}

// want fails the test unless a response has a status and headers, given as name
// and value in turn. A value of "" means that the header is absent.
func (c *client) want(a answer, status int, headers ...string) {
	c.t.Helper()
	if a.StatusCode != status {
		c.t.Errorf("status %d, want %d; headers %v, body %q", a.StatusCode, status, a.Header, a.body)
	}
	for i := 0; i < len(headers); i += 2 {
		if got := strings.Join(a.Header.Values(headers[i]), " and "); got != headers[i+1] {
			c.t.Errorf("%s is %q, want %q", headers[i], got, headers[i+1])
		}
	}
}

// wantRetry fails the test unless Retry-After is at most some time, and not much less.
func (c *client) wantRetry(a answer, most time.Duration) {
	c.t.Helper()
	s, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if d := time.Duration(s) * time.Second; err != nil || d > most || d < most-time.Minute || s < 1 {
		c.t.Errorf("Retry-After is %q, want %v or a little less", a.Header.Get("Retry-After"), most)
	}
}

const served = "served"
