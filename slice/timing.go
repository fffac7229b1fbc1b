package slice

import (
	"math"
	"time"
)

// Never is the RetryAfter of a cost that can never fit.
const Never time.Duration = math.MaxInt64

// longest is the longest wait that is not Never.
const longest = (Never/time.Microsecond - 1) * time.Microsecond

// Guard is how long before its end in the store a lease ends on a node: it covers
// late timers and goroutines that stand still between two instructions (timers on
// busy cores were measured 28 ms late at the 99th percentile), and 2 % of the
// lease's life for clocks that run at different rates.
func Guard(life time.Duration) time.Duration {
	return max(50*time.Millisecond, life/50)
}

// RetryAfter is how long a caller has to wait from g on until a cost fits
// that g refused: until used + cost ≤ B, or to the end of the window; [Never]
// if the cost is above the burst. It is positive, in whole microseconds, and
// rounded up such that waiting exactly that long suffices on an account that
// nobody else uses. Tokens out on lease are expected back by then: idle
// nodes return them, and the others are asked to.
func RetryAfter(rule Rule, g Grant, cost int64) time.Duration {
	if cost > rule.Burst || rule.Burst <= 0 {
		return Never
	}
	if rule.Window > 0 {
		return max(micros(windowLeft(rule, g)), time.Microsecond)
	}
	// The store subtracts rate × elapsed from what it last wrote: three
	// operations at most, each off by at most one part in 2^53 of twice the
	// burst and of what is used. The slack covers them.
	slack := (float64(rule.Burst) + min(g.Used, 2*float64(rule.Burst))) * 0x1p-50
	wait, used := heldBack(rule, g)
	excess := used + float64(cost) - float64(rule.Burst)
	// Rounded up first: beside a large number the slack would be lost.
	return max(micros(math.Ceil((excess+slack)/rule.Rate)+wait+lag(g)), time.Microsecond)
}

// heldBack returns how long (µs) leases of a higher limit keep an account from draining,
// and what is used then at most. More than 2·B is no debt: it is lent under a higher
// limit. Leases end within two epochs. Then the account counts as just full, or holds up
// to 2·B that count as a debt: those whose leases ended last may have kept it from draining.
//
// 100,000/min lent 9,200, and the limit is 10/min now: one token is free after three
// minutes and six seconds at most, not after 15 hours.
func heldBack(rule Rule, g Grant) (wait, used float64) {
	if g.Used <= 2*float64(rule.Burst) || g.Lent == 0 {
		return 0, g.Used
	}
	return float64((g.Now/Epoch+2)*Epoch - g.Now), 2 * float64(rule.Burst)
}

// ResetAfter is how long it takes from g on until the account is as good as
// never used, if nobody uses it and all leases end: until used is 0, or to
// the end of the window. 0 if it already is.
func ResetAfter(rule Rule, g Grant) time.Duration {
	switch {
	case g.Used <= 0 || rule.Burst <= 0:
		return 0
	case rule.Window > 0:
		return micros(windowLeft(rule, g))
	default:
		wait, used := heldBack(rule, g)
		return micros(used/rule.Rate + wait + lag(g))
	}
}

// windowLeft is the time in µs from g to the end of its window.
func windowLeft(rule Rule, g Grant) float64 {
	return float64(rule.Window-g.Now%rule.Window) + lag(g)
}

// lag is the time in µs until the store's clock has caught up with the
// account: it stands still till then.
func lag(g Grant) float64 { return float64(g.Now - g.Clock) }

// micros rounds up to whole microseconds, below Never.
func micros(us float64) time.Duration {
	if us = math.Ceil(us); us < float64(longest/time.Microsecond) {
		return time.Duration(us) * time.Microsecond
	}
	return longest
}
