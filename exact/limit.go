package exact

import (
	"fmt"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// maxPeriod is 2^53 µs, some 285 years.
const maxPeriod = slice.MaxTokens * time.Microsecond

// Limit is how much of something is allowed: a token bucket ([Per] and its
// relatives) or a fixed window ([Window]). Limits are values and comparable.
// The zero Limit is invalid; constructors never fail, [Limit.Validate] tells.
//
// Count and burst are at most 2^53 tokens; a period is 1 µs to 2^53 µs, and rounded to
// whole microseconds. A count of 0 denies everything, and [Unlimited] nothing.
type Limit struct {
	count    int64
	burst    int64
	period   time.Duration
	windowed bool
}

// PerSecond allows n per second, and n at once.
func PerSecond(n int64) Limit { return Per(n, time.Second) }

// PerMinute allows n per minute, and n at once.
func PerMinute(n int64) Limit { return Per(n, time.Minute) }

// PerHour allows n per hour, and n at once.
func PerHour(n int64) Limit { return Per(n, time.Hour) }

// PerDay allows n per 24 hours, and n at once.
func PerDay(n int64) Limit { return Per(n, 24*time.Hour) }

// Per is a token bucket that refills continuously with n tokens per period
// and holds n, unless [Limit.WithBurst] says otherwise. The period is rounded to whole
// microseconds.
func Per(n int64, period time.Duration) Limit {
	return Limit{count: n, burst: n, period: rounded(period)}
}

// rounded leaves what is below a microsecond to Validate.
func rounded(period time.Duration) time.Duration {
	if period < time.Microsecond || period > maxPeriod {
		return period
	}
	return (period + time.Microsecond/2) / time.Microsecond * time.Microsecond
}

// Window allows n in each window of the given length. Windows are aligned to
// the Unix epoch (UTC) by Redis's clock, so 2n may pass around an edge.
func Window(n int64, period time.Duration) Limit {
	return Limit{count: n, burst: n, period: rounded(period), windowed: true}
}

// Unlimited is the largest limit that can be written, 2^53 per microsecond: it denies nothing.
// Package hybrid asks the store nothing by it.
func Unlimited() Limit { return Per(slice.MaxTokens, time.Microsecond) }

// WithBurst returns l with a bucket that holds b tokens. A window has no
// burst of its own: any other than its count makes it invalid.
func (l Limit) WithBurst(b int64) Limit {
	l.burst = b
	return l
}

// Count is the number of tokens per period.
func (l Limit) Count() int64 { return l.count }

// Period is the time in which Count tokens come back, or a window's length.
func (l Limit) Period() time.Duration { return l.period }

// Burst is the most that is admitted at once.
func (l Limit) Burst() int64 { return l.burst }

// Windowed reports whether l is a fixed window.
func (l Limit) Windowed() bool { return l.windowed }

// String returns, for example, "100 per 1m0s, burst 20" or
// "100 per window of 1m0s"; "unlimited" of Unlimited.
func (l Limit) String() string {
	switch {
	case l == Unlimited():
		return "unlimited"
	case l.windowed:
		return fmt.Sprintf("%d per window of %v", l.count, l.period)
	case l.burst == l.count:
		return fmt.Sprintf("%d per %v", l.count, l.period)
	default:
		return fmt.Sprintf("%d per %v, burst %d", l.count, l.period, l.burst)
	}
}

// Validate returns nil, or an [ErrInvalidLimit] that names the field.
func (l Limit) Validate() error {
	switch {
	case l == Limit{}:
		return fmt.Errorf("%w: the zero Limit", ErrInvalidLimit)
	case l.count < 0 || l.count > slice.MaxTokens:
		return fmt.Errorf("%w: count %d, allowed 0 to %d", ErrInvalidLimit, l.count, int64(slice.MaxTokens))
	case l.period < time.Microsecond || l.period > maxPeriod:
		return fmt.Errorf("%w: period %v, allowed %v to %v", ErrInvalidLimit, l.period, time.Microsecond, maxPeriod)
	case l.windowed && l.burst != l.count:
		return fmt.Errorf("%w: burst %d of a window, allowed its count %d", ErrInvalidLimit, l.burst, l.count)
	case l.burst < 0 || l.burst > slice.MaxTokens || l.burst == 0 && l.count > 0:
		return fmt.Errorf("%w: burst %d, allowed 1 to %d", ErrInvalidLimit, l.burst, int64(slice.MaxTokens))
	}
	return nil
}

// Rule is l in the units of an account. Its burst and rate are 0 if l denies
// everything; such a rule must not be sent to the store. l must be valid.
func (l Limit) Rule() slice.Rule {
	us := l.period.Microseconds()
	r := slice.Rule{}
	if l.windowed {
		r.Window = us
	}
	if l.count > 0 {
		r.Burst, r.Rate = l.burst, float64(l.count)/float64(us)
	}
	return r
}

// ResetRule is the rule by which an account is reset. Under a limit that denies
// everything or nothing, which the store cannot settle by, any rule does: what is left
// is what is lent. l must be valid.
func (l Limit) ResetRule() slice.Rule {
	r := l.Rule()
	if l.count == 0 || l == Unlimited() {
		r.Burst, r.Rate = 1, 1/float64(l.period.Microseconds())
	}
	return r
}
