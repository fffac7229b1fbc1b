package syncer

import (
	"math"
	"time"
)

// The sizing is pure arithmetic: what a slice should hold, when to ask for
// more, how long a lease may be trusted, how often a saturated key may ask.

// target returns the tokens that a slice should hold for a demand of so many
// tokens per horizon, in whole units; 0 if hardly another request is expected
// before a horizon has passed.
func target(count float64, unit int64) int64 {
	if unit > maxTarget || count < comesAgain*float64(unit) {
		return 0
	}
	return int64(min(math.Ceil(targetShare*count/float64(unit)), float64(maxTarget/unit))) * unit
}

// targetShare is the part of a horizon that a slice lasts for. What is lent does
// not drain, so that long slices cost admissions when the load moves: when one of
// 20 nodes alone goes on from 50 % to 300 % of a limit, 96 % of a window are
// admitted instead of 95 %, for the same number of operations (floors serve
// between slices).
const targetShare = 0.8

// comesAgain is what a demand counts when a request of one token came now and
// the one before it a horizon ago.
const comesAgain = 1 + 1/math.E

// wholeCosts returns what covers an expected demand of tokens, in whole units and
// at least one: one standard deviation more, if arrivals are random.
func wholeCosts(expected float64, unit int64) int64 {
	n := expected / float64(unit)
	costs := math.Round(n + math.Sqrt(n))
	return int64(max(min(costs, float64(maxTarget/unit)), 1)) * unit
}

// maxTarget keeps a slice and a grant on top of it within a cell's word.
const maxTarget = 1 << 30

// lowWater returns the level at which to ask for a refill: what is used until
// it is there, so that a hot key does not run dry, and never more than half of
// the slice. A key that rarely sees a request in that time uses its slice up
// first. A refill may wait for the tick where a tick is short beside the time
// that a slice lasts.
func lowWater(d *demand, horizon, latency, tick, tokens int64) int64 {
	span := 2 * latency
	if tick <= horizon/16 {
		span += tick
	}
	return min(int64(math.Round(d.over(span, horizon))), tokens/2)
}

// Bounds of the pacing period.
const (
	shortestPace = 20 * time.Millisecond
	longestPace  = 10 * time.Second
	paceTokens   = 5.75 // a paced settle should find so many costs per node
	paceRequests = 55   // and need not serve more requests than that
)

// pace returns the period at which each of m nodes asks for a saturated
// account that fills at rate tokens per ns from empty in fill ns, when
// requests cost c and come every gap ns. Where they come fast the period is
// shorter: they pay for it.
func pace(m int, c int64, rate float64, fill int64, gap float64) int64 {
	p := clampNanos(min(paceTokens*float64(m)*float64(c)/rate, paceRequests*gap))
	p = min(max(p, fill/20), fill/8)
	return min(max(p, int64(shortestPace)), int64(longestPace))
}
