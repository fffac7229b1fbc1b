package conformance

import (
	"io"
	"net/http"
	"testing"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

func middleware(t *testing.T, l *hybrid.Limiter, opts *httplimit.Options) func(http.Handler) http.Handler {
	t.Helper()
	mw, err := httplimit.New(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

var served = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, httpsuite.Served(r.PostFormValue))
})
