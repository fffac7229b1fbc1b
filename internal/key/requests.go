package key

import (
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is the requests of a key: those that the store's reply answers, those that
// came meanwhile, and those that stop waiting.

// Take admits n tokens from the slice. The take that reaches the low-water mark asks
// for a refill.
func (s *State) Take(t *Step, n int64) bool {
	left, ok := t.Cell.Take(n, t.Dead)
	if ok && t.Cell.Crossed(left, n) {
		s.Refill(t)
	}
	return ok
}

// Recheck decides a request from what may have arrived while it waited.
func (s *State) Recheck(t *Step, n int64) (Answer, bool) {
	if s.Take(t, n) {
		return Answer{Allowed: true, Path: PathSlice}, true
	}
	if t.Plan.Fits(n) && s.poll.deny.Denies(n, t.Now) {
		return Answer{Path: PathMemo, RetryAfter: s.poll.deny.RetryAfter(t.Now)}, true
	}
	return Answer{}, false
}

// overdue reports whether the requests of the settle under way have waited for as long
// as one may: the next one would wait for nothing.
func (s *State) overdue(t *Step) bool {
	return s.inflight.phase == queued && t.Now-s.inflight.since > t.Timing.Timeout
}

// Leave takes a request out that stops waiting. The answer may have come in the
// meantime. Else a request that ran out of time is judged by the policy, and one whose caller
// went away by none.
func (s *State) Leave(t *Step, w *Waiter, callerLeft bool) (a Answer, answered bool) {
	select {
	case a = <-w.Answer:
		return a, true
	default:
	}
	w.left = true
	if callerLeft {
		return a, false
	}
	if w.sent {
		t.TimedOut = true
	} else { // the store was not asked yet: it is not to blame
		s.budget.add(1)
	}
	return s.fallBack(t, w.Cost), true
}

// fallBack decides a request by the failure policy. What it admits is charged with the
// next settle.
func (s *State) fallBack(t *Step, n int64) Answer {
	a := Answer{Path: PathFallback}
	s.debt.enter(t.window())
	switch t.Policy {
	case FailOpen:
		a.Allowed = true
	case FailClosed:
		a.RetryAfter = ProbeInterval
	default:
		a.Allowed, a.RetryAfter = t.share(&s.fallback).take(t, n)
	}
	if a.Allowed {
		t.Tally.PolicyAllowed++
		s.debt.admitted += float64(n)
		t.use(float64(n))
	} else {
		t.Tally.PolicyDenied++
		s.denials.add(1, t.Now)
	}
	if !s.inflight.busy() {
		t.timer(EnsureTimer, t.Now+t.jittered(int64(ProbeInterval)))
	}
	return a
}

// takeNeeds moves the requests that wait into the settle; reset says that one of them
// asks to free the key.
func (s *State) takeNeeds(t *Step) (runs []slice.Need, reset bool) {
	runs, reset = s.inflight.needs()
	for _, run := range runs {
		s.demand.noteCost(run.Cost)
		s.demand.attempt(run.Cost*max(run.Count, 1), t.Now, t.Plan.horizon)
		s.budget.add(max(run.Count, 1))
		s.demand.askedAt = t.Now
	}
	return runs, reset
}

// answer gives the requests of a settle their answers, in their order.
func (s *State) answer(t *Step, sent []*Waiter, st *slice.Settle) {
	if st == nil || st.Outcome != slice.Ran {
		for _, w := range sent {
			if w.Cost == 0 { // with nothing left to tell, all is settled
				if st != nil {
					w.Err = st.Err
				}
				w.answer(Answer{Allowed: st == nil && !s.hold.lease.InDoubt(), Path: PathFallback})
			} else if !w.left {
				w.answer(s.fallBack(t, w.Cost))
			}
		}
		return
	}
	run, used := 0, int64(0)
	for _, w := range sent {
		if w.Cost == 0 {
			w.answer(Answer{Allowed: true, Path: PathExact})
			continue
		}
		if w.waits {
			a := s.reserved(t, w.Cost, st)
			if w.left && a.Allowed {
				s.Refund(t, w.Cost) // it does not go after all
			}
			w.answer(a)
			continue
		}
		for st.Usage.Needs[run].Cost != w.Cost || used == st.Usage.Needs[run].Count {
			run, used = run+1, 0
		}
		a := Answer{Allowed: used < st.Grant.Admitted[run], Path: PathExact}
		used++
		if a.Allowed {
			t.Tally.ExactAllowed++
		} else {
			t.Tally.ExactDenied++
			s.denials.add(1, t.Now)
			a.RetryAfter = s.retryAfter(t, w.Cost, st)
		}
		w.answer(a)
	}
}

// Reserve asks the store for the turn of a request that was denied and may wait: n tokens
// that are charged at once, and may be used when the account has drained to its limit. Until
// then nothing else is admitted from it, so smaller costs cannot starve a large one.
func (s *State) Reserve(t *Step, n int64) *Waiter {
	w := NewWaiter(n)
	w.waits = true
	s.inflight.waiting = append(s.inflight.waiting, w)
	s.begin(t, purpose{}, SendNow)
	return w
}

// reserved is the answer to a reservation, the last need of its settle.
func (s *State) reserved(t *Step, cost int64, st *slice.Settle) Answer {
	g, burst := &st.Grant, float64(st.Rule.Burst)
	if g.Admitted[len(g.Admitted)-1] == 1 {
		t.Tally.ExactAllowed++
		a := Answer{Allowed: true, Path: PathExact}
		if g.Used > burst {
			a.RetryAfter = slice.RetryAfter(st.Rule, *g, 0)
		}
		return a
	}
	t.Tally.ExactDenied++
	s.denials.add(1, t.Now)
	twice := st.Rule
	twice.Burst *= 2
	return Answer{Path: PathExact, RetryAfter: slice.RetryAfter(twice, *g, cost)}
}

// retryAfter returns what a refused request is told: the deny cache's time if that
// answers for its cost, and never less than the account's own.
func (s *State) retryAfter(t *Step, cost int64, st *slice.Settle) time.Duration {
	own := slice.RetryAfter(st.Rule, st.Grant, cost)
	if m := s.poll.deny; m != nil && m.Cost <= cost {
		return max(own, m.RetryAfter(t.Now))
	}
	return own
}

// serveWaiting answers requests that came during the settle from what it brought;
// those that still need the store go with the next one.
func (s *State) serveWaiting(t *Step) {
	rest := s.inflight.waiting[:0]
	for _, w := range s.inflight.waiting {
		if w.left {
			continue
		}
		if w.Cost > 0 && !(w.waits && !t.Down) {
			if a, ok := s.Recheck(t, w.Cost); ok {
				w.answer(a)
				continue
			}
			if t.Down {
				s.budget.add(1)
				w.answer(s.fallBack(t, w.Cost))
				continue
			}
		}
		rest = append(rest, w)
	}
	s.inflight.leaveWaiting(rest)
	if len(rest) > 0 || s.debt.back != nil && !t.Down {
		s.begin(t, purpose{}, SendNow)
	}
}

// denyAll ends what a key was about whose limit is 0 by now: the store could not settle
// it by such a limit. No settle is under way.
func (s *State) denyAll(t *Step) {
	s.count(t)
	s.abandon(t)
	s.debt.forget()
	for _, w := range s.inflight.waiting {
		switch {
		case w.left:
		case w.Cost == 0:
			w.answer(Answer{Allowed: true})
		default:
			t.Tally.ExactDenied++
			s.denials.add(1, t.Now)
			w.answer(Answer{Path: PathExact, RetryAfter: slice.Never})
		}
	}
	s.inflight.waiting = nil
}
