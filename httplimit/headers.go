package httplimit

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/hybridlimit/hybrid"
)

// show sets the headers of a response. The names are canonical, so they go
// straight into the map; the values of one response are parts of one string, in
// slices that nobody else has and that no Add can grow into each other.
func (m *middleware) show(h http.Header, v *verdict) {
	switch m.style {
	case XRateLimit, XRateLimitEpoch:
		m.showParts(h, &v.result)
	case IETF:
		m.showFields(h, v)
	}
	if s, ok := retryAfter(&v.result); ok {
		h[m.names.RetryAfter] = []string{strconv.FormatInt(s, 10)}
	}
}

// showParts sets the X-RateLimit headers.
func (m *middleware) showParts(h http.Header, r *hybrid.Result) {
	reset := wholeSeconds(untilReset(r))
	if m.style == XRateLimitEpoch {
		reset = unixAfter(time.Now(), untilReset(r))
	}
	var room [3 * len("-9223372036854775808")]byte
	b := strconv.AppendInt(room[:0], r.Limit, 10)
	i := len(b)
	b = strconv.AppendInt(b, r.Remaining, 10)
	j := len(b)
	b = strconv.AppendInt(b, reset, 10)
	s := string(b)
	values := []string{s[:i], s[i:j], s[j:]}
	h[m.names.Limit] = values[0:1:1]
	h[m.names.Remaining] = values[1:2:2]
	h[m.names.Reset] = values[2:3:3]
}

// showFields sets the IETF headers.
func (m *middleware) showFields(h http.Header, v *verdict) {
	limit := v.limit.limiter.Limit(v.key)
	var room [128]byte
	b := append(room[:0], v.limit.quoted...)
	b = append(b, ";r="...)
	b = appendInteger(b, v.result.Remaining)
	if t, ok := effectiveWindow(limit, &v.result); ok {
		b = append(b, ";t="...)
		b = appendInteger(b, t)
	}
	values := []string{string(b), v.limit.policies.text(v.limit.quoted, limit)}
	h[m.names.RateLimit] = values[0:1:1]
	h[m.names.Policy] = values[1:2:2]
}

// untilReset is the time until all of the limit is free, never less than what
// Retry-After says.
func untilReset(r *hybrid.Result) time.Duration {
	if r.Allowed || r.RetryAfter == hybrid.Never {
		return max(0, r.ResetAfter)
	}
	return max(r.ResetAfter, r.RetryAfter)
}

// unixAfter is the Unix time some time from now, rounded up to whole seconds.
func unixAfter(now time.Time, d time.Duration) int64 {
	at := now.Add(d)
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}

// effectiveWindow is the t of the RateLimit field: the seconds for which what
// remains must last. A client that divides r by t must not come out above
// the limit's rate, as it would with a bucket's time to full: nothing, when it is full.
func effectiveWindow(limit hybrid.Limit, r *hybrid.Result) (seconds int64, ok bool) {
	if !r.Allowed {
		return retryAfter(r)
	}
	var t time.Duration
	switch {
	case limit.Count() == 0:
		return 0, false // in shadow mode
	case limit.Windowed() && r.ResetAfter > 0:
		t = min(r.ResetAfter, limit.Period())
	case limit.Windowed():
		t = limit.Period()
	default:
		refill := limit.Period().Seconds() * float64(max(r.Remaining, 1)) / float64(limit.Count())
		return max(1, int64(math.Ceil(min(refill, maxInteger)))), true
	}
	return max(1, wholeSeconds(t)), true
}
