package httplimit

import (
	"net/http"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/fields"
)

// Decision is what Options.Decided and Options.Deny are told. What passes has
// Result.Allowed; with Result.Shadowed it would have been denied, but for shadow mode.
// Where Redis did not answer, and the failure policy decided, Result.Path is
// hybrid.PathFallback.
type Decision struct {
	Result  hybrid.Result
	Limiter *hybrid.Limiter // whose limit the Result describes
	Name    string          // of that limit, as responses call it
	Key     string          // that was counted
	Status  int             // of the default answer: 429, or 503 if the limit is FailClosed and Redis does not answer; 200 if the request passes

	limit *limit
}

// RetryAfter is the value of the Retry-After header: whole seconds, rounded up,
// at least 1. ok is false if there is none: the request passes, or never will.
func (d Decision) RetryAfter() (seconds int64, ok bool) { return fields.RetryAfter(&d.Result) }

func (v *verdict) decision() Decision {
	return Decision{Result: v.result, Limiter: v.limit.limiter, Name: v.limit.name, Key: v.key, Status: v.status(), limit: v.limit}
}

// status tells apart who is denied for what they have used, and who for the state
// of Redis.
func (v *verdict) status() int {
	switch {
	case v.result.Allowed:
		return http.StatusOK
	case v.result.Path == hybrid.PathFallback && v.limit.limiter.OnFailure() == hybrid.FailClosed:
		return http.StatusServiceUnavailable
	default:
		return http.StatusTooManyRequests
	}
}
