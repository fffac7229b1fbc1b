package httplimit

import (
	"net/http"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/syncer"
)

// Decision is what Options.Deny and Options.Shadowed are told.
type Decision struct {
	Result  hybrid.Result
	Limiter *hybrid.Limiter // whose limit the Result describes
	Name    string          // of that limit, as responses call it
	Key     string          // that was counted
	Status  int             // of the default answer: 429, or 503 if the limit is FailClosed and Redis does not answer; 200 if the request passes
}

// RetryAfter is the value of the Retry-After header: whole seconds, rounded up,
// at least 1. ok is false if there is none: the request passes, or never will.
func (d Decision) RetryAfter() (seconds int64, ok bool) { return retryAfter(&d.Result) }

func (v *verdict) decision() Decision {
	return Decision{Result: v.result, Limiter: v.limit.limiter, Name: v.limit.name, Key: v.key, Status: statusOf(&v.result)}
}

func statusOf(r *hybrid.Result) int {
	switch {
	case r.Allowed:
		return http.StatusOK
	case unavailable(r):
		return http.StatusServiceUnavailable
	default:
		return http.StatusTooManyRequests
	}
}

// unavailable reports whether a request is denied for the state of Redis, and not
// for what its client has used: the policy is FailClosed, or the node's share of a
// FailLocal limit is smaller than the cost. All that such a denial can say is
// when Redis is probed next.
func unavailable(r *hybrid.Result) bool {
	return !r.Allowed && r.Path == hybrid.PathFallback && r.RetryAfter == syncer.ProbeInterval
}

func retryAfter(r *hybrid.Result) (seconds int64, ok bool) {
	if r.Allowed || r.RetryAfter == hybrid.Never {
		return 0, false
	}
	return max(1, wholeSeconds(r.RetryAfter)), true
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
