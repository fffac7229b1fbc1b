package conformance

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// newNode is a node on an embedded Redis that answers however busy the machine is.
func newNode(t testing.TB) *hybrid.Node {
	t.Helper()
	node, err := hybrid.New(redistest.MiniClient(t), &hybrid.Options{
		Logger:       slog.New(slog.NewTextHandler(io.Discard, nil)),
		StoreTimeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	return node
}

// middleware limits by a limiter that admits exactly its limit.
func middleware(t testing.TB, node *hybrid.Node, name string, limit hybrid.Limit, opts *httplimit.Options) func(http.Handler) http.Handler {
	t.Helper()
	l, err := node.Limiter(name, limit, &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// listen serves on a real port.
func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func get(t testing.TB, url string) *http.Response {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}

var served = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })
