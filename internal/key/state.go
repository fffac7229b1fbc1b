package key

import "github.com/hybridlimit/hybrid/slice"

// State is one key on one node, from its first contact with the store until
// nothing is left to remember. The shell holds the account's lock in every method.
type State struct {
	hold     holding
	demand   demand
	budget   budget
	poll     polling
	debt     debt
	fallback Fallback
	inflight inflight
	scarce   reclaim
	denials  denials
}

// Begin gives a new state its first values. Its demand begins with what the floor has
// served of late: a key that outgrows its floor has been in use for a while, and would
// else ask again for a slice that is made for one request.
func (s *State) Begin(t *Step) {
	s.demand.unit = 1
	s.demand.tokens = decaying{count: t.floorServedLately(), at: t.Now}
	s.denials.lately.at = t.Now
	s.hold.idleSince = t.Now
}

// Admit decides a request of n tokens, or queues it for the next settle: then it
// returns the waiter. late is true if the request may not wait any more.
func (s *State) Admit(t *Step, n int64, late bool) (Answer, *Waiter) {
	overdue := s.overdue(t)
	if overdue && s.inflight.sentAt >= s.inflight.since {
		t.TimedOut = true // as it would be when the request had waited
	}
	if overdue || late || t.Down {
		s.budget.add(1)
		return s.fallBack(t, n), nil
	}
	w := NewWaiter(n)
	s.inflight.waiting = append(s.inflight.waiting, w)
	s.begin(t, purpose{}, SendNow)
	return Answer{}, w
}

// Compose makes the settle to send now; nil if there is nothing to tell or ask.
func (s *State) Compose(t *Step) *slice.Settle {
	s.inflight.sentNow(t.Now)
	if s.hold.doubtIsOver(t.Cell, t.Dead) {
		s.abandon(t)
	}
	s.leaveOldWindow(t)
	s.inflight.resetInFlight = false
	if !t.Plan.Stored() {
		s.endWithoutStore(t)
		return nil
	}
	needs, reset := s.takeNeeds(t)
	s.count(t)
	s.demand.nextUnit()
	u := s.report(t, needs, reset)
	if silent(&u) {
		s.poll.exhausted = false // or the timer would ask again at once, and for ever
		return nil
	}
	s.budget.spend()
	s.demand.settled()
	s.inflight.sentAt = t.Now
	return &slice.Settle{Rule: t.Plan.Rule, Usage: u}
}

// Expiry returns the tick at which the lease of a reply ends here; 0 if it brought none.
// The shell makes sure that the tick will be noticed before Apply fills the cell.
func (s *State) Expiry(st *slice.Settle) slice.Tick {
	if st == nil || st.Outcome != slice.Ran || st.Usage.Held == 0 && st.Grant.Granted == 0 {
		return 0
	}
	return expiry(&st.Grant, s.inflight.sentAt)
}

// Apply ends the settle under way. st is the settle as composed, with its outcome; nil
// if nothing had to be sent.
func (s *State) Apply(t *Step, st *slice.Settle) {
	sent := s.inflight.end()
	switch {
	case st == nil:
	case st.Outcome == slice.Ran:
		s.ran(t, st)
	case st.Outcome == slice.NotRun:
		s.hold.lease.NotRun(t.Cell)
		s.demand.counted += st.Usage.Spent
		if !s.inflight.resetInFlight && !isReset(st) {
			s.debt.requeue(st.Usage)
		}
	default:
		t.Tally.Expired += st.Usage.Returned // perhaps the store took them, perhaps they end with the lease
		s.hold.lease.Lost()
		if !s.inflight.resetInFlight {
			s.debt.requeueUnanswered(st.Usage)
		}
	}
	s.answer(t, sent, st)
	if !t.Plan.Stored() {
		s.endWithoutStore(t)
	}
	s.serveWaiting(t)
	s.Next(t)
}

// Look is what the node does for a key when its timer says so: poll an exhausted key,
// report what it owes, renew or return its slice. Every operation among it is paid
// by the key's requests; what they cannot pay ends with its lease.
func (s *State) Look(t *Step) {
	switch {
	case s.inflight.busy():
		return // its end plans the next look
	case t.Down && t.Retired:
		s.Discard(t) // or an outage would keep all that it evicts
		return
	case t.Down:
		t.timer(SetTimer, t.Now+t.jittered(t.Timing.Downtime))
		return
	}
	inDoubt := s.hold.lease.InDoubt()
	switch {
	case s.hold.doubtIsOver(t.Cell, t.Dead):
		s.abandon(t)
	case s.inflight.limitChanged:
		if !s.attempt(t, purpose{kind: giveBack}) && (!s.hold.lease.Holds() || t.Cell.Expired(t.Dead)) {
			s.abandon(t)
		}
	case s.poll.exhausted && !inDoubt:
		s.keepPolling(t)
	case s.debt.owes():
		s.attempt(t, purpose{kind: serve})
	case s.hold.lease.Holds() && !inDoubt:
		s.keepLease(t)
	}
	s.Next(t)
}

// Next plans the next look, or says that nothing is left to remember.
func (s *State) Next(t *Step) {
	if s.inflight.busy() {
		return
	}
	if t.Retired {
		s.poll.exhausted = false // it serves no request any more
	}
	if s.debtIsOver(t) {
		s.debt.forget()
		t.Lost = t.Lost || t.Retired || t.untracked()
	}
	horizon := max(t.Plan.horizon, shortestLook)
	due := t.aligned(t.jittered(horizon))
	switch {
	case s.inflight.limitChanged:
		due = t.Now + t.jittered(int64(ProbeInterval))
	case s.poll.exhausted && !s.hold.lease.InDoubt():
		due = max(s.poll.next, t.Now+1)
	case s.debt.owes():
		due = t.Now + t.nextTick()
		if !s.budget.covers() { // a request must pay first, and will tell it
			due = t.Now + t.jittered(max(horizon, int64(ProbeInterval)))
		}
	case s.hold.lease.Holds():
		if t.Now-s.hold.idleSince >= horizon { // nothing happens before it may have to be renewed
			due = max(due, t.Now+t.Cell.Left(t.Now)-2*horizon)
		}
	case s.isIdle(t):
		t.timer(StopTimer, 0)
		s.count(t)
		t.Idle = true
		return
	}
	t.timer(SetTimer, due)
}
