package conformance

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

// A client that obeys Retry-After succeeds at its first retry, after as long as
// it was told and no longer. It would come back after a millisecond on its own.
func TestRetryingClientSucceeds(t *testing.T) {
	for _, style := range []httplimit.Headers{httplimit.XRateLimit, httplimit.IETF, httplimit.NoHeaders} {
		w := httpsuite.NewWorld(t)
		var denials, calls atomic.Int64
		limit := middleware(t, w.Limiter("api", hybrid.Per(2, 2*time.Second)), &httplimit.Options{
			Headers: style,
			Deny: func(w http.ResponseWriter, _ *http.Request, d httplimit.Decision) {
				denials.Add(1)
				w.WriteHeader(d.Status)
			},
		})
		c := httpsuite.Listen(t, limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			_, _ = io.WriteString(w, "served")
		})))
		client := retryablehttp.NewClient()
		client.Logger = nil
		client.RetryWaitMin, client.RetryWaitMax, client.RetryMax = time.Millisecond, time.Millisecond, 1

		start, waits := time.Now(), 0
		for range 3 {
			before, at := denials.Load(), time.Now()
			resp, err := client.Get(c.URL)
			if err != nil {
				t.Fatalf("%v: %v", style, err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || string(body) != "served" {
				t.Fatalf("%v: %d %q, %v", style, resp.StatusCode, body, err)
			}
			if denials.Load() > before {
				waits++
				if d := time.Since(at); d < time.Second {
					t.Errorf("%v: a retry after %v, told was a second", style, d)
				}
			}
		}
		if waits == 0 || calls.Load() != 3 || denials.Load() != int64(waits) {
			t.Errorf("%v: %d calls served, %d denied, %d waited for, in %v", style, calls.Load(), denials.Load(), waits, time.Since(start))
		}
	}
}
