package key

import (
	"math"
	"time"
)

// The sizing is pure arithmetic: what a slice should hold, when to ask for more, and
// how often an exhausted key may be asked for.

// target returns the tokens that a slice should hold for a demand of count tokens per
// horizon, in whole units; 0 if hardly another request is expected before a
// horizon has passed.
func target(count float64, unit int64) int64 {
	if unit > maxTarget || count < comesAgain*float64(unit) {
		return 0
	}
	return int64(min(math.Ceil(targetShare*count/float64(unit)), float64(maxTarget/unit))) * unit
}

// targetShare is the part of a horizon that a slice lasts for. What is lent does not
// drain, so long slices cost admissions when the load moves: when one of 20 nodes
// alone goes on from 50 % to 300 % of a limit, 96 % of a window are admitted instead
// of 95 %, for the same number of operations (floors serve between slices).
const targetShare = 0.8

// comesAgain is what a demand counts when a request of one token came now and the one
// before it a horizon ago.
const comesAgain = 1 + 1/math.E

// wholeCosts returns what covers an expected demand of tokens, in whole units and at
// least one: one standard deviation more, if arrivals are random.
func wholeCosts(expected float64, unit int64) int64 {
	n := expected / float64(unit)
	costs := math.Round(n + math.Sqrt(n))
	return int64(max(min(costs, float64(maxTarget/unit)), 1)) * unit
}

// maxTarget keeps a slice and a grant on top of it within a cell's word.
const maxTarget = 1 << 30

// lowWater returns the level at which to ask for a refill: what is used until the
// refill arrives, so that a hot key does not run dry, and at most half of the slice. A
// key that rarely sees a request in that time uses its slice up first. Where a tick
// is short beside the time that a slice lasts, a refill may wait for the tick.
func lowWater(d *decaying, horizon, latency, tick, tokens int64) int64 {
	span := 2 * latency
	if tick <= horizon/16 {
		span += tick
	}
	return min(int64(math.Round(d.over(span, horizon))), tokens/2)
}

// Bounds of the poll interval.
const (
	shortestPoll = 20 * time.Millisecond
	longestPoll  = 10 * time.Second
	pollCosts    = 5.75 // a poll should find this many costs per node
	pollRequests = 55   // and need not serve more requests than this
)

// pollInterval returns the time between two questions of one node about an exhausted
// account, of m nodes that ask. The account fills at rate tokens per ns, in fill
// ns from empty; requests cost c and come every gap ns. Where they come fast the
// interval is shorter: they pay for it.
//
// 1000/min on 20 servers, cost 1: 5.75·20/1000 min = 6.9 s, capped at an eighth of
// a minute (7.5 s); at 20 requests per second on the node, 55/20 = 2.75 s, raised to a twentieth
// of a minute: 3 s.
func pollInterval(m int, c int64, rate float64, fill int64, gap float64) int64 {
	p := clampNanos(min(pollCosts*float64(m)*float64(c)/rate, pollRequests*gap))
	p = min(max(p, fill/20), fill/8)
	return min(max(p, int64(shortestPoll)), int64(longestPoll))
}
