package httplimit

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/hybridlimit/hybrid"
)

// answers is how responses are written, whatever was decided.
type answers struct {
	style   Headers
	names   Names    // canonical
	shown   []string // the names of the headers that show the limit
	problem bool
	noKey   int
}

// Field is a header of a response. Names are canonical.
type Field struct{ Name, Value string }

// Fields returns the headers of the limit for the response to a request that was
// decided, and Retry-After if it was denied. A request that is free shows none.
func (a *answers) Fields(d *Decision) []Field {
	if d.limit == nil {
		return nil
	}
	values := a.values(&verdict{d.limit, d.Key, d.Result})
	fields := make([]Field, 0, len(values)+1)
	for i, value := range values {
		fields = append(fields, Field{a.shown[i], value})
	}
	if s, ok := retryAfter(&d.Result); ok {
		fields = append(fields, Field{a.names.RetryAfter, strconv.FormatInt(s, 10)})
	}
	return fields
}

// show sets the same in a response of net/http. The names are canonical, so they
// go straight into the map; the values of one response are parts of one string, in
// slices that nobody else has and that no Add can grow into each other.
func (a *answers) show(h http.Header, v *verdict) {
	switch a.style {
	case XRateLimit, XRateLimitEpoch:
		values := a.parts(&v.result)
		h[a.names.Limit] = values[0:1:1]
		h[a.names.Remaining] = values[1:2:2]
		h[a.names.Reset] = values[2:3:3]
	case IETF:
		values := a.items(v)
		h[a.names.RateLimit] = values[0:1:1]
		h[a.names.Policy] = values[1:2:2]
	}
	if s, ok := retryAfter(&v.result); ok {
		h[a.names.RetryAfter] = []string{strconv.FormatInt(s, 10)}
	}
}

// values are those of the headers that show the limit.
func (a *answers) values(v *verdict) []string {
	switch a.style {
	case XRateLimit, XRateLimitEpoch:
		return a.parts(&v.result)
	case IETF:
		return a.items(v)
	default:
		return nil
	}
}

// parts are the values of the X-RateLimit headers.
func (a *answers) parts(r *hybrid.Result) []string {
	reset := wholeSeconds(untilReset(r))
	if a.style == XRateLimitEpoch {
		reset = unixAfter(time.Now(), untilReset(r))
	}
	var room [3 * len("-9223372036854775808")]byte
	b := strconv.AppendInt(room[:0], r.Limit, 10)
	i := len(b)
	b = strconv.AppendInt(b, r.Remaining, 10)
	j := len(b)
	b = strconv.AppendInt(b, reset, 10)
	s := string(b)
	return []string{s[:i], s[i:j], s[j:]}
}

// items are the values of the IETF headers.
func (a *answers) items(v *verdict) []string {
	limit := v.limit.limiter.Limit(v.key)
	var room [128]byte
	b := append(room[:0], v.limit.quoted...)
	b = append(b, ";r="...)
	b = appendInteger(b, v.result.Remaining)
	if t, ok := effectiveWindow(limit, &v.result); ok {
		b = append(b, ";t="...)
		b = appendInteger(b, t)
	}
	return []string{string(b), v.limit.policies.text(v.limit.quoted, limit)}
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
