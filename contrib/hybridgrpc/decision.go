package hybridgrpc

import (
	"math"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/hybridlimit/hybrid"
)

// Decision is what the functions of ServerOptions are told. What passes has
// Result.Allowed; with Result.Shadowed it would have been denied, but for shadow mode.
// Where Redis did not answer, and the failure policy decided, Result.Path is
// hybrid.PathFallback.
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
	wait := min(r.RetryAfter, math.MaxInt64-time.Millisecond) // or rounding up would overflow
	return max(1, (wait+time.Millisecond-1)/time.Millisecond) * time.Millisecond, true
}
