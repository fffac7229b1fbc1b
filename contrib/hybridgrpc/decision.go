package hybridgrpc

import (
	"math"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/hybridlimit/hybrid"
)

// Decision is what the functions of ServerOptions are told.
type Decision struct {
	Result  hybrid.Result
	Limiter *hybrid.Limiter // whose limit the Result describes
	Name    string          // of that limit, as answers call it
	Key     string          // that was counted
	Method  string          // of the call, full
	Code    codes.Code      // of the default answer: ResourceExhausted, or Unavailable if the limit is FailClosed and Redis does not answer; OK if the call passes
}

// RetryAfter is the delay of RetryInfo: whole milliseconds, rounded up. ok is false if
// there is none: the call passes, or never will.
func (d Decision) RetryAfter() (delay time.Duration, ok bool) { return retryAfter(&d.Result) }

func (v *verdict) decision(call Call) Decision {
	return Decision{Result: v.result, Limiter: v.limit.limiter, Name: v.limit.name, Key: v.key, Method: call.Method, Code: codeOf(v.limit.limiter, &v.result)}
}

// codeOf tells apart who is denied for what they have used, and who for the state of
// Redis.
func codeOf(l *hybrid.Limiter, r *hybrid.Result) codes.Code {
	switch {
	case r.Allowed:
		return codes.OK
	case r.Path == hybrid.PathFallback && l.OnFailure() == hybrid.FailClosed:
		return codes.Unavailable
	default:
		return codes.ResourceExhausted
	}
}

func retryAfter(r *hybrid.Result) (delay time.Duration, ok bool) {
	if r.Allowed || r.RetryAfter == hybrid.Never {
		return 0, false
	}
	return max(1, roundUp(r.RetryAfter, time.Millisecond)) * time.Millisecond, true
}

// roundUp is how many units cover a duration.
func roundUp(d, unit time.Duration) time.Duration {
	n := d / unit
	if d%unit > 0 {
		n++
	}
	return n
}

func wholeSeconds(d time.Duration) int64 { return int64(roundUp(d, time.Second)) }

// untilReset is the time until all of the limit is free, never less than what
// retry-after says.
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

// effectiveWindow is the t of the ratelimit field, as package httplimit has it: the
// seconds for which what remains must last.
func effectiveWindow(limit hybrid.Limit, r *hybrid.Result) (seconds int64, ok bool) {
	if !r.Allowed {
		return retrySeconds(r)
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

// retrySeconds is the value of retry-after: whole seconds, rounded up, at least 1.
func retrySeconds(r *hybrid.Result) (seconds int64, ok bool) {
	if r.Allowed || r.RetryAfter == hybrid.Never {
		return 0, false
	}
	return max(1, wholeSeconds(r.RetryAfter)), true
}
