package law

import (
	"math"
	"time"
)

// What the protocol fixes. The numbers are those of package syncer.
const (
	horizonShare = 0.25             // of the fill time: how far a node looks ahead
	horizonMost  = 15 * time.Second // and no further
	paceTokens   = 5.75             // a paced settle finds so many tokens per node
	paceRequests = 55               // and need not serve more requests than that
	targetShare  = 0.8              // of what is used in a horizon: a slice
)

// node is what one node sees of one key.
type node struct {
	rate    float64 // requests per second
	horizon float64 // s
	floor   float64 // whole tokens that its floor holds
	earns   float64 // tokens per second that its floor earns
	share   float64 // tokens of the limit, evenly divided
	period  float64 // s, between paced settles
}

// horizon is how many seconds a node looks ahead.
func (s Service) horizon() float64 {
	return min(horizonShare*s.Fill.Seconds(), horizonMost.Seconds())
}

func (s Service) node(rate float64) node {
	m, fill := float64(s.Nodes), s.Fill.Seconds()
	n := node{rate: rate / m, horizon: s.horizon(), share: s.Burst / m}
	n.floor, n.earns = math.Floor(s.Over*n.share+1e-9), s.Over*n.share/fill
	n.period = min(paceTokens*fill/n.share, paceRequests/n.rate)
	n.period = min(max(n.period, fill/20), fill/8)
	n.period = min(max(n.period, 0.02), 10)
	return n
}

// key is the cost of one key: what its nodes do while there is room in its bucket,
// or when it is used up.
func (s Service) key(rate float64) (c Cost) {
	n := s.node(rate)
	if s.usedUp(rate) {
		c.Asked, c.Paced = n.whenUsedUp()
	} else {
		c.Asked, c.Refilled = n.whenFree()
	}
	m := float64(s.Nodes)
	c.Asked, c.Refilled, c.Paced = m*c.Asked, m*c.Refilled, m*c.Paced
	c.Marks = markedPart * c.Paced
	c.Listed = -math.Expm1(-c.Marks * listedFor)
	return c
}

// Of paced settles so many find less than they want while others hold it, and mark
// the account; whoever polls reads what was marked since the poll before and a while
// before that.
const (
	markedPart = 0.28 // as measured
	listedFor  = 0.28 // s: a tick, and the overlap of polls
	mostListed = 256  // the newest
)

// usedUp reports whether a key's bucket is empty by now: it began full, and floors
// serve their part on top.
func (s Service) usedUp(rate float64) bool {
	beyond := rate*s.Fill.Seconds()/s.Burst - 1 // limits per fill time that are too much
	return beyond > 0 && (s.Since == 0 || beyond*s.Since.Seconds() > s.Fill.Seconds())
}

// comesAgain is the part of a key's requests that another one follows within the
// horizon: only these make a node hold tokens.
func (n node) comesAgain() float64 { return -math.Expm1(-n.rate * n.horizon) }

// whenFree is a node's operations on a key with room, per second. Of what the floor
// misses, a request that no other follows waits for the store. One that another
// follows makes the node want a slice, and if that one is followed too, the slice
// serves; otherwise it brought nothing. Where there is a floor, what it served tells
// the node of its demand, and the request that waits brings the slice.
func (n node) whenFree() (asked, refilled float64) {
	beyond, again := n.rate*n.missed(), n.comesAgain()
	alone := again * (1 - again)
	if n.floor >= 1 {
		alone = 0
	}
	return beyond * (1 - again), beyond * (alone + again*again/max(n.slice(), 1))
}

// missed is the part of the requests that the floor does not serve.
func (n node) missed() float64 {
	if n.floor < 1 {
		return 1 // less than a token serves nobody
	}
	return missed(n.rate/n.earns, n.floor)
}

// lentShare is how many slices a node's even share of the limit makes: a slice is
// at most a part (1/2M) of what is free, which is what is not lent to the others.
// Without losses it would be 3.
const lentShare = 3.3

// slice is the tokens of a slice: what the node uses in a horizon, and two at least,
// as far as the limit has it. Between slices the floor serves, and what it served
// counts for the next one more than it lasted for: such slices grow.
func (n node) slice() float64 {
	horizons := targetShare
	if n.floor >= 1 {
		horizons = 2 * (targetShare + min(n.earns/n.rate, 0.5))
	}
	return min(max(horizons*n.rate*n.horizon, 2), max(n.share/lentShare, min(n.share/2, 2)))
}

// whenUsedUp is a node's operations on a key whose bucket is empty. Whoever has
// requests again and again asks once per period for all of them; others ask with
// each request.
func (n node) whenUsedUp() (asked, paced float64) {
	again := n.comesAgain()
	return (1 - again) * n.rate, again * min(1/n.period, n.rate)
}
