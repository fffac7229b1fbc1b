package oracle

import (
	"cmp"
	"slices"
)

// Request is one request that a fleet was offered, and its answer.
type Request struct {
	At      int64 // ns since the Unix epoch
	Cost    int64 // tokens
	Allowed bool  // the fleet's answer
}

// Ideal is a perfect central limiter: one account, no delay, no slices.
// The zero time of its clock is its first request, at which it is full.
type Ideal struct {
	limit   Limit
	level   float64
	at      int64
	started bool
}

// NewIdeal is a full account.
func NewIdeal(l Limit) *Ideal {
	return &Ideal{limit: l, level: l.burst}
}

// Allow admits cost tokens at time at if they are there. Times do not fall.
func (i *Ideal) Allow(at, cost int64) bool {
	if !i.Fits(at, cost) {
		return false
	}
	i.level -= float64(cost)
	return true
}

// Fits says whether Allow would admit, and takes nothing.
func (i *Ideal) Fits(at, cost int64) bool {
	i.refill(at)
	return float64(cost) <= i.level+Slack*i.limit.burst
}

// Charge takes cost tokens that somebody else admitted, down to an empty
// account and no further; a debt stays as it is.
func (i *Ideal) Charge(at, cost int64) {
	i.refill(at)
	i.level = max(min(i.level, 0), i.level-float64(cost))
}

// Owe takes tokens that nobody was asked for, down to a debt of one burst.
func (i *Ideal) Owe(at, tokens int64) {
	i.refill(at)
	i.level = max(min(i.level, -i.limit.burst), i.level-float64(tokens))
}

// Return gives tokens back, up to a full account.
func (i *Ideal) Return(at, tokens int64) {
	i.refill(at)
	i.level = min(i.limit.burst, i.level+float64(tokens))
}

func (i *Ideal) refill(at int64) {
	last := i.at
	i.at = at
	if !i.started {
		i.started = true
		return
	}
	if w := i.limit.window; w > 0 {
		if windowOf(at, w) != windowOf(last, w) {
			i.level = i.limit.burst
		}
		return
	}
	i.level = min(i.limit.burst, i.level+i.limit.rate*float64(at-last))
}

// Outcome compares a fleet with the ideal on the same requests, in tokens.
type Outcome struct {
	Offered  int64
	Admitted int64 // by the fleet
	Ideal    int64 // by the perfect central limiter
	// FalseDenials are requests (not tokens) that the fleet denied although
	// an ideal account charged with what the fleet did admit had room for
	// them. So tokens admitted beyond the limit cannot hide them.
	FalseDenials int64
}

// Ratio is the admitted share of the ideal; 1 if the ideal admits nothing.
func (o Outcome) Ratio() float64 {
	if o.Ideal == 0 {
		return 1
	}
	return float64(o.Admitted) / float64(o.Ideal)
}

// Add sums outcomes of different accounts.
func (o *Outcome) Add(p Outcome) {
	o.Offered += p.Offered
	o.Admitted += p.Admitted
	o.Ideal += p.Ideal
	o.FalseDenials += p.FalseDenials
}

// Compare replays the requests of one account, in any order.
func (l Limit) Compare(requests []Request) Outcome {
	sorted := slices.Clone(requests)
	slices.SortStableFunc(sorted, func(a, b Request) int { return cmp.Compare(a.At, b.At) })

	var o Outcome
	ideal, ours := NewIdeal(l), NewIdeal(l)
	for _, r := range sorted {
		o.Offered += r.Cost
		if ideal.Allow(r.At, r.Cost) {
			o.Ideal += r.Cost
		}
		if r.Allowed {
			o.Admitted += r.Cost
			ours.Charge(r.At, r.Cost)
		} else if ours.Fits(r.At, r.Cost) {
			o.FalseDenials++
		}
	}
	return o
}

// Admissions are the requests that were let through.
func Admissions(requests []Request) []Admission {
	var out []Admission
	for _, r := range requests {
		if r.Allowed {
			out = append(out, Admission{At: r.At, Cost: r.Cost})
		}
	}
	return out
}
