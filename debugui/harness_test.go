package debugui

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

var silent = slog.New(slog.DiscardHandler)

// world is a node on an embedded Redis, in the virtual time of a synctest bubble.
type world struct {
	t    *testing.T
	mini *miniredis.Miniredis
	node *hybrid.Node
}

func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	redistest.InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) {
		w := &world{t: t, mini: mini}
		var err error
		if w.node, err = hybrid.New(redistest.NewLink(mini.Dial).Client(t), &hybrid.Options{Logger: silent}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.node.Close() }) // some tests have broken its Redis
		test(w)
	})
}

// breakRedis makes each call fail, as a server that is starting does.
func (w *world) breakRedis() { w.mini.SetError(redistest.Loading) }

func (w *world) mendRedis() { w.mini.SetError("") }

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
