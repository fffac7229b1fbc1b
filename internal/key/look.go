package key

import (
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is what a node does for a key without a request: refills, polls, renewals,
// returns.

// shortestLook is the least time between two looks at a key that needs nothing.
const shortestLook = int64(10 * time.Millisecond)

// begin starts a settle with a purpose, if none is under way.
func (s *State) begin(t *Step, p purpose, how Send) { t.send(s.inflight.begin(p, how, t.Now)) }

// attempt starts a settle in the background, if the key may.
func (s *State) attempt(t *Step, p purpose) bool {
	if !s.mayStart(t, p.kind) {
		return false
	}
	s.begin(t, p, SendLater)
	return true
}

// mayStart reports whether a settle can be sent without a request, and the key's
// requests have paid for it. Of a slice in doubt nothing is told.
func (s *State) mayStart(t *Step, k kind) bool {
	if s.inflight.busy() || s.hold.lease.InDoubt() && k != serve || t.Closed || t.Down {
		return false
	}
	s.count(t)
	return s.budget.covers()
}

// Refill asks for more tokens because a take reached the low-water mark.
func (s *State) Refill(t *Step) {
	switch {
	case t.Retired:
		return
	case s.poll.denies(t.Now):
		return // exhausted: the next poll asks for all
	case s.floorServes(t):
		return // it asks when it has served
	case !s.mayStart(t, refill):
		return
	case s.lastsATick(t):
		s.begin(t, purpose{kind: refill}, SendLater)
	default:
		s.begin(t, purpose{kind: refill}, SendNow)
	}
}

// lastsATick reports whether the slice will hardly run dry before the next tick, by the
// demand as it was and by that since the last settle, which may have risen.
func (s *State) lastsATick(t *Step) bool {
	tick := t.Timing.SyncInterval
	lately := float64(s.demand.attempts) * float64(tick) / float64(max(t.Now-s.inflight.sentAt, 1))
	return float64(t.Cell.Tokens())+0.5 > max(lately, s.demand.tokens.over(tick, t.Plan.horizon))
}

// floorServed notes what the floor served of a key in touch with the store, whose slice
// is made for all its demand. The take that leaves the floor unable to serve another
// asks for the refill that the floor has put off.
func (s *State) floorServed(t *Step, n int64) {
	s.demand.noteCost(n)
	s.demand.attempt(n, t.Now, t.Plan.horizon)
	s.budget.add(1)
	s.hold.idleSince = t.Now
	if !t.Retired {
		s.Refill(t)
	}
}

// floorServes reports whether the next request can be served by the floor, so that the
// slice can be refilled later: when what it has left lasts for two round trips.
func (s *State) floorServes(t *Step) bool {
	if !t.hasFloor(s) {
		return false
	}
	t.startFloor()
	lasts := float64(s.demand.unit) + s.demand.tokens.over(2*t.Timing.Latency, t.Plan.horizon)
	return t.ownFloor().Level(t.Now, t.Plan.Floor, t.Fleet.History()) >= lasts
}

// keepPolling sends the poll of an exhausted key that had demand since the last one, or
// has something to tell. A key that is hardly asked for any more is left to its next
// request.
func (s *State) keepPolling(t *Step) {
	s.count(t)
	switch {
	case s.pollGoal(t) == 0:
		s.poll.exhausted = false
		return
	case s.demand.attempts > 0 || s.debt.owes():
		s.attempt(t, purpose{kind: poll})
	case s.hold.lease.Holds():
		s.keepLease(t)
	}
	s.pollAfter(t, t.jittered(s.pollInterval(t)))
}

// keepLease renews the lease of a slice in use before it ends, and returns an idle slice
// that others may need: where much is free it ends with its lease.
func (s *State) keepLease(t *Step) {
	tokens, horizon := t.Cell.Tokens(), t.Plan.horizon
	s.hold.look(tokens, t.Now)
	wanted := s.wanted(t)
	switch {
	case t.Cell.Expired(t.Dead):
		if !wanted || tokens == 0 || !s.attempt(t, purpose{kind: giveBack}) {
			s.abandon(t)
		}
	case t.Now-s.hold.idleSince >= horizon:
		if wanted {
			s.attempt(t, purpose{kind: giveBack})
		}
	case s.floorServes(t):
		// a refill comes when the floor has served
	case t.Cell.Left(t.Now) <= 2*horizon && t.outlives(t.Now+2*horizon):
		s.attempt(t, purpose{kind: refill})
	}
}

// wanted reports whether others may need what an idle slice holds: little is free, or much
// of what is used is lent. What is left of a window at its end is lost.
func (s *State) wanted(t *Step) bool {
	burst := float64(t.Plan.Rule.Burst)
	return t.Plan.Rule.Window > 0 || 2*float64(t.Known.Free(t.Plan, t.Now)) < burst || 4*float64(s.hold.lent) >= burst
}

// outlives reports whether a renewed lease would last beyond a moment: in a window none
// lasts beyond the window.
func (t *Step) outlives(moment int64) bool {
	left, known := t.windowLeft()
	return !known || t.Now+int64(left-slice.Guard(left)) > moment
}

// untracked reports whether the key has no place in the table, which is full of busy
// ones: the account serves one request.
func (t *Step) untracked() bool { return t.Shared != nil }

// debtIsOver reports whether what the key owes is not worth telling any more: no
// request can pay for it, and either none will come or, had it been told when it was
// last tried, it would have drained by now.
func (s *State) debtIsOver(t *Step) bool {
	if !s.debt.owes() {
		return false
	}
	gone := t.Retired || t.untracked()
	return gone && t.Closed || !s.budget.covers() && (t.Retired || t.Now-s.inflight.sentAt >= t.Plan.fill)
}

// isIdle reports whether there is nothing to do about the key: nothing is lent, owed or
// waited for, and no request has needed the store for a horizon. Then the state can go:
// what it remembers for later requests is of no use to a key that gets none.
func (s *State) isIdle(t *Step) bool {
	switch {
	case s.Busy():
		return false
	case t.Retired:
		return true
	case t.Now-s.demand.askedAt <= t.Plan.horizon:
		return false
	}
	paid := t.untracked() || s.fallback.lacks(t) == 0
	return t.untracked() || paid && t.Now >= s.poll.promisedRetryAt
}

// Busy reports whether a settle is under way or a request waits for one.
func (s *State) Busy() bool { return s.inflight.busy() || len(s.inflight.waiting) > 0 }
