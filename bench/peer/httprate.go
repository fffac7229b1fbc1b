package peer

import (
	"net/http"

	"github.com/go-chi/httprate"
)

var httpRate = Kind{
	Name: "httprate", Module: "github.com/go-chi/httprate", Rule: "sliding window of two counters",
	Keeps: "a count per hash of a key and window in memory", Place: Memory,
	Open: openHTTPRate,
}

// httpRateLimiter asks what the middleware asks per request, without a server
// around it and without headers.
type httpRateLimiter struct {
	lim *httprate.RateLimiter
	req *http.Request
}

func openHTTPRate(s Setup) (Limiter, error) {
	req, err := http.NewRequest(http.MethodGet, "/", http.NoBody)
	if err != nil {
		return nil, err
	}
	noHeaders := httprate.WithResponseHeaders(httprate.ResponseHeaders{})
	return &httpRateLimiter{httprate.NewRateLimiter(int(s.Limit.Count), s.Limit.Period, noHeaders), req}, nil
}

func (l *httpRateLimiter) Allow(key string) (bool, error) {
	return !l.lim.OnLimit(nowhere{}, l.req, key), nil
}

func (l *httpRateLimiter) Close() error { return nil }

// nowhere is a response that nobody reads. Without names of headers none is set.
type nowhere struct{}

func (nowhere) Header() http.Header         { return nil }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}
