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
			w.answer(s.reserved(t, w, st))
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

// Turn is the place of a request that waits: tokens that the store has lent ahead, and that
// may be spent at a moment, like a slice that opens then.
type Turn struct {
	Cost int64 // tokens; 0: no turn
	Tag  slice.Tag
	Goes int64 // ns, when it may be spent
	Ends int64 // ns, when its lease ends here: from then on it may not be spent
}

// Reserve asks the store for the turn of a request of n tokens that was denied and may
// wait: they are lent at once, and may be spent when the account has drained to its limit.
// Until then nothing else is admitted from it, so smaller costs cannot starve a large one.
func (s *State) Reserve(t *Step, n int64) *Waiter {
	w := NewWaiter(n)
	w.waits = true
	s.inflight.waiting = append(s.inflight.waiting, w)
	s.begin(t, purpose{}, SendNow)
	return w
}

// reserved is the answer to a reservation, the last need of its settle. A caller that has
// left does not go: what it took goes back.
func (s *State) reserved(t *Step, w *Waiter, st *slice.Settle) Answer {
	g, burst := &st.Grant, float64(st.Rule.Burst)
	admitted := g.Admitted[len(g.Admitted)-1] == 1
	switch {
	case admitted && g.Used > burst:
		w.Turn = TurnOf(w.Cost, st, t.Now, s.inflight.sentAt)
		if w.left {
			t.Left = w.Turn
		}
		return Answer{Allowed: true, Path: PathExact}
	case admitted && w.left:
		s.Refund(t, w.Cost)
		return Answer{}
	case admitted:
		t.Tally.ExactAllowed++
		return Answer{Allowed: true, Path: PathExact}
	}
	t.Tally.ExactDenied++
	s.denials.add(1, t.Now)
	return Answer{Path: PathExact, RetryAfter: s.room(t, w.Cost, st)}
}

// room returns when there may be room for a turn that was refused, because others stand
// before it: when it can stand beside them or, if two of its cost cannot, when the last of
// them has gone, and its node has said so. 0 if none stands before it, or if a higher
// limit used more than two bursts, beside which no turn is given.
func (s *State) room(t *Step, cost int64, st *slice.Settle) time.Duration {
	g, burst, twice := &st.Grant, float64(st.Rule.Burst), st.Rule
	twice.Burst *= 2
	said := time.Duration(t.Timing.Latency)
	switch {
	case g.Used <= burst || g.Used > 2*burst:
		return 0
	case 2*cost <= st.Rule.Burst && g.Used+float64(cost) > 2*burst:
		return slice.RetryAfter(twice, *g, cost) + said
	default:
		return slice.RetryAfter(st.Rule, *g, 0) + said
	}
}

// TurnOf reads a turn from the reply to a settle that the store executed.
func TurnOf(cost int64, st *slice.Settle, now, sentAt int64) Turn {
	turn := Turn{Cost: cost, Tag: st.Grant.Tag, Goes: now}
	if st.Grant.Used > float64(st.Rule.Burst) {
		turn.Goes = saturatingAdd(now, int64(slice.RetryAfter(st.Rule, st.Grant, 0)))
	}
	life := time.Duration(st.Grant.Life) * time.Microsecond
	turn.Ends = sentAt + int64(life-slice.Guard(life))
	return turn
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

// endWithoutStore ends what a key was about whose limit denies everything or nothing by now:
// the store could not settle it by such a limit. No settle is under way.
func (s *State) endWithoutStore(t *Step) {
	s.count(t)
	s.abandon(t)
	s.debt.forget()
	for _, w := range s.inflight.waiting {
		switch {
		case w.left:
		case w.Cost == 0:
			w.answer(Answer{Allowed: true})
		case t.Plan.Always:
			t.Tally.ExactAllowed++
			w.answer(Answer{Allowed: true, Path: PathExact})
		default:
			t.Tally.ExactDenied++
			s.denials.add(1, t.Now)
			w.answer(Answer{Path: PathExact, RetryAfter: slice.Never})
		}
	}
	s.inflight.waiting = nil
}
