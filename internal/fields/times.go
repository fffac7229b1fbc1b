// Package fields is how a limit is shown to whoever meets it, in headers of HTTP and in
// metadata of gRPC: httplimit, contrib/hybridgrpc and contrib/hybridrls show the same
// numbers for the same decision.
package fields

import (
	"math"
	"time"

	"github.com/hybridlimit/hybrid"
)

// RetryAfter is the value of retry-after: whole seconds, rounded up, at least 1. ok is
// false if there is none: the request passes, or never will.
func RetryAfter(r *hybrid.Result) (seconds int64, ok bool) {
	if r.Allowed || r.RetryAfter == hybrid.Never {
		return 0, false
	}
	return max(1, WholeSeconds(r.RetryAfter)), true
}

// Unlimited reports whether there is nothing to show: the key has no limit.
func Unlimited(r *hybrid.Result) bool { return r.Allowed && r.Limit == hybrid.Unlimited().Burst() }

// WholeSeconds rounds up.
func WholeSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// UntilReset is the time until all of the limit is free, never less than what
// retry-after says.
func UntilReset(r *hybrid.Result) time.Duration {
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
		return RetryAfter(r)
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
	return max(1, WholeSeconds(t)), true
}
