package key

import (
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file takes over a reply: the slice, what is known of the account, and whether the
// key is exhausted.

// ran takes over the reply to a settle that the store executed.
func (s *State) ran(t *Step, st *slice.Settle) {
	g := &st.Grant
	lost, spent := s.hold.lease.Ran(t.Cell, *g, s.Expiry(st))
	if g.Dropped {
		s.countSlice(t, spent)
		s.demand.counted = 0
		t.Tally.Expired += lost
	}
	if s.debt.admitted == 0 {
		s.fallback = Fallback{} // the outage is over, and paid for: the next one's share is of what is free then
	}
	if !s.inflight.resetInFlight {
		s.learn(t, st)
		s.conclude(t, st)
	}
	if s.hold.lease.Holds() {
		s.hold.used(t.Cell.Tokens(), t.Now)
		t.Cell.SetLow(lowWater(&s.demand.tokens, t.Plan.horizon, t.Timing.Latency, t.Timing.SyncInterval, t.Cell.Tokens()))
	}
}

// learn keeps what the store said. It turns the floor off while the account is nearly
// full, where the floor's tokens would only be taken from others, and for as long
// as the account is in debt.
func (s *State) learn(t *Step, st *slice.Settle) {
	g, burst := &st.Grant, float64(st.Rule.Burst)
	s.hold.lent = g.Lent
	t.Known.Learn(st.Rule, g, t.Now)
	if burst-g.Used < burst/4 {
		off := t.Plan.horizon
		if g.Used > burst {
			off = max(off, int64(slice.RetryAfter(st.Rule, *g, 0)))
		}
		t.suspendFloor(saturatingAdd(t.Now, off))
	}
}

// conclude decides from a reply whether the key is exhausted, so that this node polls for
// it, and whether costs are denied from memory until it asks again.
func (s *State) conclude(t *Step, st *slice.Settle) {
	if st.Rule != t.Plan.Rule {
		return // the limit has changed: what was judged by the old one is over
	}
	if cost := smallestRefused(st); cost > 0 {
		s.refuse(t, cost, st)
		return
	}
	free := float64(st.Rule.Burst) - st.Grant.Used
	polled := s.poll.exhausted && st.Usage.Want > 0
	sharingEnds := tooLittle(st) && free < s.resumeThreshold(t) && s.pollGoal(t) > 0
	gaveBack := st.Usage.Charged < 0 || st.Usage.Returned > 0 || st.Usage.Return > 0
	switch {
	case s.poll.exhausted && free >= s.resumeThreshold(t):
		s.poll.exhausted = false
		s.dropDenials(t)
	case polled && st.Grant.Granted < st.Usage.Want:
		s.refuse(t, s.refusable(free), st) // the next request would be
	case polled || sharingEnds:
		s.exhaust(t)
		s.dropDenials(t)
	case gaveBack && free >= float64(s.poll.cost(s.demand.unit)):
		s.dropDenials(t) // it is there for this node as well
	}
}

// tooLittle reports whether a grant shows that sharing has come to its end: it brought
// nothing, or less than an account with small shares should lend.
func tooLittle(st *slice.Settle) bool {
	u, granted := &st.Usage, st.Grant.Granted
	return u.Want > 0 && (granted == 0 || u.Divisor == exhaustedDivisor && granted < u.Want)
}

// resumeThreshold returns how many tokens must be free for nodes to go back from polling to
// sharing: far more than where sharing ends, or they would go back and forth.
func (s *State) resumeThreshold(t *Step) float64 {
	return max(float64(t.Plan.Rule.Burst)/4, 4*float64(s.demand.unit)*float64(t.shareDivisor()))
}

// refusable returns the smallest cost that is known to be refused when this much is
// free: that of the deny cache, or the unit, of which less is free.
func (s *State) refusable(free float64) int64 {
	if cost := s.poll.cost(s.demand.unit); float64(cost) > free {
		return cost
	}
	return s.demand.unit
}

// dropDenials empties the deny cache, keeping the demand that it counted.
func (s *State) dropDenials(t *Step) {
	s.count(t)
	s.poll.drop()
}

// smallestRefused returns the smallest cost that was refused, 0 if none was.
func smallestRefused(st *slice.Settle) (cost int64) {
	for i, need := range st.Usage.Needs {
		if st.Grant.Admitted[i] < need.Count && (cost == 0 || need.Cost < cost) {
			cost = need.Cost
		}
	}
	return cost
}

// refuse remembers that the store refused a cost, until another answer is due.
func (s *State) refuse(t *Step, cost int64, st *slice.Settle) {
	own := int64(slice.RetryAfter(st.Rule, st.Grant, cost))
	freeAt := saturatingAdd(t.Now, own)
	ends := s.nextAnswer(t, own)
	over := s.promiseIsOver(t, freeAt, st)
	s.count(t)
	s.poll.refuse(cost, ends, freeAt, over, t.Now, float64(st.Rule.Burst)-st.Grant.Used)
	s.request(t, cost, st)
}

// promiseIsOver reports whether no caller waits for the promised moment any more: it has
// passed, or this is the answer that was due then. It is not over if the answer only
// came early, of an account that no other node uses: a caller who waits until then
// finds the tokens, which are free at freeAt.
func (s *State) promiseIsOver(t *Step, freeAt int64, st *slice.Settle) bool {
	promised := s.poll.promisedRetryAt
	early := st.Grant.Granted == 0 && st.Grant.Lent == 0 && freeAt <= promised+t.Timing.Latency
	return promised <= t.Now || promised <= t.Now+s.margin(t) && !early
}

// nextAnswer plans the next question to a store that refuses, and returns when its
// answer is due. If more requests are expected the key is exhausted: from now on this
// node polls, in advance and for all its callers. Otherwise a request asks when the
// account itself can admit it, or after an interval, whichever comes first.
func (s *State) nextAnswer(t *Step, own int64) int64 {
	if s.pollGoal(t) == 0 || !t.Plan.Sliced || t.untracked() {
		s.poll.exhausted = false
		s.poll.next = t.aligned(max(min(own, s.pollInterval(t)), s.turn(t), 1))
		return s.poll.next
	}
	s.exhaust(t)
	if t.Plan.Rule.Window == 0 {
		return s.poll.next + s.margin(t)
	}
	end := saturatingAdd(t.Now, max(own, 1)) // a new window is not exhausted
	s.poll.next = min(s.poll.next, end)
	return min(s.poll.next+s.margin(t), end)
}

// turn is how long a node leaves a brief account to the others after a refusal, so that all
// nodes together ask twice per cost that it earns, whatever the load is. 0 for other
// accounts, and for one that holds a single cost: it would be full before its turn.
func (s *State) turn(t *Step) int64 {
	if !t.Plan.brief || t.Plan.Rule.Burst < 2*s.demand.unit {
		return 0
	}
	return clampNanos(float64(t.nodes()) * float64(s.demand.unit) / (2 * t.Plan.ratePerNano()))
}

// margin is how long the answer to a poll may take.
func (s *State) margin(t *Step) int64 {
	return min(t.Timing.Latency+int64(TimerPause), s.pollInterval(t)/4)
}

// TimerPause is how long the node lets timers become due together, so that what they
// ask for shares calls.
const TimerPause = 2 * time.Millisecond

// pollAfter plans the next poll. No denial lasts for more than 10 s, or a Reset on
// another node would be seen too late.
func (s *State) pollAfter(t *Step, wait int64) {
	s.poll.next = t.aligned(min(wait, int64(longestPoll)-s.margin(t)))
}

// exhaust makes the node poll for the key, and plans the next poll if none is planned.
// All nodes find a key exhausted at about the same time: the first wait spreads them over
// the interval.
func (s *State) exhaust(t *Step) {
	wait := s.pollInterval(t)
	switch {
	case !s.poll.exhausted:
		wait = int64(t.Chance * float64(wait))
	case s.poll.next > t.Now:
		return
	default:
		wait = t.jittered(wait)
	}
	s.poll.exhausted = true
	s.pollAfter(t, wait)
}
