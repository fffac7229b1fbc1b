package debugui

import (
	"fmt"
	"math"
	"time"

	"github.com/hybridlimit/hybrid"
)

// limitWords says what one key may use.
func limitWords(l hybrid.Limit) string {
	switch text := countWords(l.Count()) + " per " + periodWords(l.Period()); {
	case l == hybrid.Unlimited():
		return "unlimited"
	case l.Count() == 0:
		return "nothing: a limit of 0"
	case l.Windowed():
		return text + ", in fixed windows"
	case l.Burst() != l.Count():
		return text + ", burst " + countWords(l.Burst())
	default:
		return text
	}
}

// countWords writes a limit whole: it was written whole.
func countWords(n int64) string { return grouped(float64(n)) }

func periodWords(d time.Duration) string {
	switch d {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	default:
		return secondsText(d.Seconds())
	}
}

// overshoot is what the fleet may admit beyond the limit now: a limiter in shadow mode
// denies nothing.
func (l *limiterInfo) overshoot(st *hybrid.LimiterStats) float64 {
	if l.shadow {
		return math.Inf(1)
	}
	return st.Overshoot
}

// bound is the same in words.
func (l *limiterInfo) bound(st *hybrid.LimiterStats) string {
	if l.shadow {
		return "no bound: shadow mode"
	}
	return boundWords(st.Overshoot, l.accuracy.Over())
}

// boundWords says what may be admitted beyond the limit. In an outage that is more than
// the accuracy says.
func boundWords(overshoot, over float64) string {
	switch {
	case math.IsNaN(overshoot):
		return none
	case math.IsInf(overshoot, 1):
		return "no bound while Redis is away"
	case overshoot == 0:
		return "never above the limit"
	case overshoot > over:
		return "at most " + partText(overshoot) + " above: one more burst, Redis is away"
	default:
		return "at most " + partText(overshoot) + " above the limit"
	}
}

// withoutRedis says what a limiter's callers get while Redis does not answer.
func withoutRedis(l *limiterInfo, fleet int) string {
	if l.shadow {
		return "everything is admitted: shadow mode"
	}
	const first = "what servers hold in slices is admitted, two minutes at most; then "
	switch l.onFailure {
	case hybrid.FailOpen:
		return first + "everything is admitted, without limit"
	case hybrid.FailClosed:
		return first + "everything is denied"
	}
	share := "its fair share of the limit"
	if fleet > 1 {
		share += fmt.Sprintf(" (%d servers were last heard of)", fleet)
	}
	return first + "each server admits " + share
}
