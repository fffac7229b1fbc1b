package oracle

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Check replays the admissions, in any order, against the limit.
func (l Limit) Check(admissions []Admission) Report {
	sorted := slices.Clone(admissions)
	slices.SortStableFunc(sorted, func(a, b Admission) int { return cmp.Compare(a.At, b.At) })
	c := NewChecker(l)
	for _, a := range sorted {
		c.Add(a)
	}
	return c.Report()
}

// Checker replays admissions one by one, in order of time, in constant memory.
//
// A token bucket is kept as its debt: what was admitted and has not been
// refilled. The debt after an admission is the greatest, over all intervals
// that end there, of admitted − r·t; so comparing it with B once per admission
// judges every interval there is. A window's debt is its count.
type Checker struct {
	limit   Limit
	debt    float64
	pending float64 // tokens of refunds that may have taken effect
	since   Report  // the run of admissions since the debt was last 0
	worst   Report
	total   int64
}

// NewChecker is a replay that has seen no admission.
func NewChecker(l Limit) *Checker {
	return &Checker{limit: l, worst: Report{Excess: -l.burst}}
}

// Add replays an admission; its time must not lie before the last one's.
func (c *Checker) Add(a Admission) {
	if c.total == 0 || c.settled(a.At) || c.debt == 0 {
		c.debt = 0
		c.since = Report{From: a.At}
	}
	c.debt += float64(a.Cost)
	c.total += a.Cost
	c.since.To = a.At
	c.since.Admitted += a.Cost
	c.since.Excess = c.debt - c.pending - c.limit.burst
	if c.since.Excess > c.worst.Excess {
		c.worst = c.since
	}
}

// Refunding says that so many tokens are given back now or later: at the latest
// when Refunded is called, and never if it is not. Until then the doubt is the
// fleet's: an interval is judged as if they were back, wherever that helps it.
func (c *Checker) Refunding(tokens int64) { c.pending += float64(tokens) }

// Refunded gives tokens back by a time, which must not lie before the last one's:
// from then on they are a negative admission. A debt is never below 0, so what has
// been refilled since it was admitted is not given back again.
func (c *Checker) Refunded(a Admission) {
	c.pending -= float64(a.Cost)
	if c.total == 0 {
		return
	}
	c.total -= a.Cost
	settled := c.settled(a.At)
	c.debt -= float64(a.Cost)
	if settled || c.debt <= 0 {
		c.debt = 0
		c.since = Report{From: a.At, To: a.At}
		return
	}
	c.since.To = a.At
	c.since.Admitted -= a.Cost
}

// settled drains the debt up to at and says whether nothing of it was left.
func (c *Checker) settled(at int64) bool {
	if w := c.limit.window; w > 0 {
		return windowOf(at, w) != windowOf(c.since.To, w)
	}
	c.debt -= c.limit.rate * float64(at-c.since.To)
	return c.debt <= 0
}

// Report is the worst interval so far.
func (c *Checker) Report() Report {
	r := c.worst
	r.Total = c.total
	r.slack = Slack * math.Max(c.limit.burst, 1)
	return r
}

// windowOf numbers windows, also before the epoch: it rounds down.
func windowOf(at int64, w time.Duration) int64 {
	n := at / int64(w)
	if at%int64(w) < 0 {
		n--
	}
	return n
}
