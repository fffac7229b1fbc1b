package httplimit

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// world is a node on an embedded Redis, in the virtual time of a synctest
// bubble, which begins at midnight UTC.
type world struct {
	t    *testing.T
	mini *miniredis.Miniredis
	link *redistest.Link // to mini
	node *hybrid.Node
}

func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	redistest.InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) { test(newWorld(t, mini)) })
}

func newWorld(t *testing.T, mini *miniredis.Miniredis) *world {
	t.Helper()
	w := &world{t: t, mini: mini, link: redistest.NewLink(mini.Dial)}
	var err error
	if w.node, err = hybrid.New(w.link.Client(t), &hybrid.Options{Logger: silent}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.node.Close() }) // some tests have broken its Redis
	return w
}

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// breakRedis makes each call fail, as a server that is starting does.
func (w *world) breakRedis() { w.mini.SetError(redistest.Loading) }

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
