package key

import "github.com/hybridlimit/hybrid/slice"

// This file fills in a settle: what becomes of the slice, what is told, what is asked for.

// Everything is more than an account can have in use: a refund of it frees all but what is
// lent.
const Everything = slice.MaxTokens

// count brings demand and budget up to date with what was taken from the slice and
// denied from memory since the last call.
func (s *State) count(t *Step) { s.countSlice(t, s.hold.lease.Unreported(t.Cell)) }

// countSlice is count of a slice of which unreported tokens are spent.
func (s *State) countSlice(t *Step, unreported int64) {
	taken, requests := s.demand.slice(unreported, t.Cell.LargestCost())
	denials, denied := s.poll.deny.Drain()
	t.Tally.SliceTokens += taken
	t.Tally.MemoDenied += denials
	s.denials.add(denials, t.Now)
	s.budget.add(requests + denials)
	s.demand.attempt(taken+denied, t.Now, t.Plan.horizon)
}

// report fills in what the settle tells and asks for.
func (s *State) report(t *Step, needs []slice.Need, reset bool) slice.Usage {
	size := s.size(t, len(needs) > 0)
	if t.Retired || t.Closed || s.inflight.limitChanged || reset {
		size = sizing{}
	}
	s.inflight.limitChanged = false
	u := s.hold.lease.Report(t.Cell, size.keep)
	if u.Tag != (slice.Tag{}) { // else nothing was reported
		s.countSlice(t, u.Spent) // with what was taken since the size was decided
		s.demand.counted = 0
	}
	u.Needs = needs
	s.tellDebt(t, &u, reset)
	if size.goal > 0 && size.goal-u.Held >= size.least && !s.hold.lease.InDoubt() && s.mayWant(t) {
		u.Want = size.goal - u.Held
		u.Want -= u.Want % s.demand.unit // the store grants whole units, and less would look like a refusal
		u.Unit, u.Least, u.Divisor = s.demand.unit, size.least, size.divisor
	}
	return u
}

// silent reports whether a settle has nothing to tell and nothing to ask.
func silent(u *slice.Usage) bool {
	return u.Spent+u.Returned+u.Held+u.Want == 0 && len(u.Needs) == 0 && u.Charged == 0 && u.Fallback == 0 && u.Return == 0
}

// tellDebt moves what was used without asking into the settle: the floor's use, as far
// as that sits on top of the limit, and what the policy admitted. A reset takes its place.
func (s *State) tellDebt(t *Step, u *slice.Usage, reset bool) {
	floor := t.Plan.FloorShare * t.floorOwes()
	if reset {
		s.debt.forget()
		u.Charged = -Everything
		return
	}
	admitted := s.debt.admitted
	switch share := t.share(&s.fallback); {
	case t.Policy == FailOpen:
		admitted = min(admitted, float64(t.Plan.Burst)/t.nodesLately())
	case share.started != 0:
		admitted = min(admitted, share.lacks(t))
	}
	s.debt.tell(u, floor, admitted)
}

// sizing is what becomes of the slice in a settle.
type sizing struct {
	keep    int64 // tokens that may stay
	goal    int64 // tokens that it should hold afterwards; 0: ask for none
	least   int64
	divisor int64
}

// size decides it. A settle with requests returns the whole slice, which could not
// serve them: kept, its parts of costs would stay stuck here while the account refuses.
func (s *State) size(t *Step, needs bool) sizing {
	wish := s.wish(t)
	switch f := &s.inflight; {
	case needs:
		return wish
	case f.kind == refill || f.kind == poll:
		wish.keep = wish.goal
		return wish
	case f.kind == giveBack:
		return sizing{keep: f.keep}
	}
	return sizing{keep: slice.MaxSlice}
}

// wish is what the key would like to hold. Nodes share what is free, so slices shrink
// as the account fills. Where a share does not last for a poll interval any more, a node
// asks for just that: of half of the free tokens at most, as others may have more use
// for them, and of all of them once the key is exhausted and a node asks once per interval.
func (s *State) wish(t *Step) sizing {
	w := sizing{goal: target(s.demand.tokens.count, s.demand.unit), least: s.demand.unit, divisor: t.shareDivisor()}
	goal := s.pollGoal(t)
	switch {
	case s.poll.exhausted:
		w.goal, w.divisor = goal, 1
	case t.Known.Free(t.Plan, t.Now)/w.divisor < goal:
		w.goal, w.divisor = goal, exhaustedDivisor
	}
	return w
}

// exhaustedDivisor is the divisor of an account whose shares have become too small. It is
// a lone node's share as well, whose grants are judged alike.
const exhaustedDivisor = 2

// shareDivisor is what a node's share of the free tokens is divided by: twice the
// fleet, so that all of it could ask at once and half would still be free.
func (t *Step) shareDivisor() int64 { return 2 * int64(t.nodes()) }

// pollGoal returns the tokens, in whole costs, for the demand of the next poll interval;
// 0 if no request is expected soon.
func (s *State) pollGoal(t *Step) int64 {
	if target(s.demand.tokens.count, s.demand.unit) == 0 {
		return 0
	}
	return wholeCosts(s.demand.tokens.over(s.pollInterval(t), t.Plan.horizon), s.demand.unit)
}

// pollInterval returns the key's poll interval.
func (s *State) pollInterval(t *Step) int64 {
	costs := s.demand.tokens.count / float64(s.demand.unit)
	return pollInterval(t.nodes(), s.demand.unit, t.Plan.ratePerNano(), t.Plan.fill, float64(t.Plan.horizon)/costs)
}

// mayWant reports whether a slice can be used at all: not by an account that is about to
// go, and not in the last moments of a window.
func (s *State) mayWant(t *Step) bool {
	if !t.Plan.Sliced || t.untracked() || t.Retired || t.Closed {
		return false
	}
	left, known := t.windowLeft()
	return !known || left > 4*slice.Guard(0)
}

// leaveOldWindow forgets what belongs to a window that is over: its slice, under whose
// lease nothing could be charged to the present one, and what is to be charged to it.
func (s *State) leaveOldWindow(t *Step) {
	s.debt.enter(t.window())
	if old := s.hold.lease.Window(); old != 0 && old < s.debt.window && t.Cell.Expired(t.Dead) {
		s.abandon(t)
	}
}

// abandon gives up the lease without telling the store, which forgets it at the end of
// the next epoch.
func (s *State) abandon(t *Step) {
	lost, spent := s.hold.lease.Lapse(t.Cell)
	s.countSlice(t, spent)
	t.Tally.Expired += lost
	s.demand.counted, s.inflight.limitChanged = 0, false
}

// isReset reports whether a settle was to free the key: that is not tried again.
func isReset(st *slice.Settle) bool { return st.Usage.Charged == -Everything }
