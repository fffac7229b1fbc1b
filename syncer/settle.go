package syncer

import (
	"github.com/hybridlimit/hybrid/slice"
)

// This file prepares settles: from the state of an account to a slice.Settle.
// apply.go is its counterpart.

// count brings the account's demand and credit up to date with what was taken
// from the slice and denied from memory since the last call. The caller holds mu.
func (a *Account) count(now int64) { a.tally(a.contact().lease.Unreported(&a.Cell), now) }

// tally is count of a slice of which so many tokens are spent and not reported.
func (a *Account) tally(unreported, now int64) {
	c := a.contact()
	taken := max(unreported-c.counted, 0)
	c.counted = unreported
	largest := a.Cell.LargestCost()
	denials, denied := c.memo.Load().Drain()
	if taken > 0 {
		a.noteCost(largest)
	}
	// Costs are not counted one by one on the fast path: with the largest of
	// them the number of requests is never overstated.
	requests := (taken + max(largest, c.unit) - 1) / max(largest, c.unit)
	a.limiter().Counts.SliceTokens.Add(uint64(taken))
	a.limiter().Counts.MemoDenied.Add(uint64(denials))
	c.deny(denials, now)
	c.earn(requests + denials)
	a.attempted(taken+denied, now)
}

// attempted adds tokens to the demand.
func (a *Account) attempted(tokens, now int64) {
	c := a.contact()
	c.demand.add(float64(tokens), now, a.Plan().horizon)
	c.attempts += tokens
}

// earn adds requests to the credit that pays for operations. It is capped so
// that a long calm does not pay for a storm of operations.
func (c *contact) earn(requests int64) { c.credit = min(c.credit+requests, mostCredit) }

const mostCredit = 1 << 10

// payBack returns what a settle cost that was prepared and is not sent.
func (a *Account) payBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.contact().paid {
		a.contact().earn(1)
	}
}

// noteCost remembers the largest cost seen since the last settle.
func (a *Account) noteCost(cost int64) { a.contact().seen = max(a.contact().seen, cost) }

// prepare makes the settle that is to be sent now, or nil if there is nothing
// to say. The caller holds mu, and sends it at once.
func (a *Account) prepare(now int64) *slice.Settle {
	c, plan := a.contact(), a.Plan()
	if a.spent() {
		a.lapse()
	}
	a.leaveOldWindow(plan, now)
	c.outdated = false
	if plan.Never {
		a.stop(now)
		return nil
	}
	needs := a.takeNeeds(now)
	a.count(now)
	c.unit = max(c.seen, (c.unit+1)/2)
	c.seen = 0
	u := a.report(needs, plan, now)
	if u.Spent+u.Returned+u.Held+u.Want == 0 && len(needs) == 0 && u.Charged == 0 && u.Fallback == 0 {
		c.saturated = false // or the loop would try again at once, and for ever
		return nil
	}
	c.paid = c.credit >= 1
	c.credit = max(c.credit-1, 0)
	c.attempts = 0
	c.sentAt = now
	return &slice.Settle{Account: a.limiter().s.store.Account(a.limiter().name, a.key), Rule: plan.Rule, Usage: u}
}

// takeNeeds moves the callers that wait into the settle, merging neighbours of
// equal cost into runs. What exceeds the runs of one settle waits for the next.
func (a *Account) takeNeeds(now int64) []slice.Need {
	c := a.contact()
	var runs []slice.Need
	i := 0
	for ; i < len(c.waiting); i++ {
		w := c.waiting[i]
		if w.left {
			continue
		}
		if w.cost > 0 {
			if n := len(runs); n > 0 && runs[n-1].Cost == w.cost {
				runs[n-1].Count++
			} else if n == slice.MaxRuns {
				break
			} else {
				runs = append(runs, slice.Need{Cost: w.cost, Count: 1})
			}
			a.noteCost(w.cost)
			a.attempted(w.cost, now)
			c.earn(1)
			w.sent = true
		}
		c.sent = append(c.sent, w)
	}
	c.waiting = append(c.waiting[:0], c.waiting[i:]...)
	if len(runs) > 0 {
		c.askedAt = now
	}
	return runs
}

// report fills in what the settle reports and asks for.
func (a *Account) report(needs []slice.Need, plan *Plan, now int64) slice.Usage {
	c := a.contact()
	size := a.size(len(needs) > 0, plan, now)
	if a.dead || a.limiter().closed.Load() || c.outgrown {
		size = sizing{}
	}
	c.outgrown = false
	u := c.lease.Report(&a.Cell, size.keep)
	if u.Tag != (slice.Tag{}) { // else nothing was reported
		a.tally(u.Spent, now) // with what was taken since size was decided
		c.counted = 0
	}
	u.Needs = needs
	a.charge(&u, plan, now)
	if size.goal > 0 && size.goal-u.Held >= size.least && !c.lease.InDoubt() && a.mayWant(plan, now) {
		u.Want = size.goal - u.Held
		u.Want -= u.Want % c.unit // the store grants whole units, and less would look like a refusal
		u.Unit, u.Least, u.Divisor = c.unit, size.least, size.divisor
	}
	return u
}

// sizing is what becomes of the slice in a settle.
type sizing struct {
	keep    int64 // tokens that may stay
	goal    int64 // tokens that it should hold afterwards; 0: ask for none
	least   int64
	divisor int64
}

// size decides it.
//
// A settle with needs returns the whole slice, which could not serve them: kept,
// its parts of costs would stay stuck here while the account refuses.
func (a *Account) size(needs bool, plan *Plan, now int64) sizing {
	c, s := a.contact(), a.wish(plan, now)
	switch {
	case needs:
		return s
	case c.intent.kind == refill || c.intent.kind == paced:
		s.keep = s.goal
		return s
	case c.intent.kind == giveBack:
		return sizing{keep: c.intent.keep}
	default:
		return sizing{keep: slice.MaxSlice}
	}
}

// wish is what the account would like to hold. Nodes share what is free, so that
// slices shrink as the account fills. Where a share does not last for a pacing
// period any more, a node asks for just that: for half of the free tokens at
// most, as others may have more use for them, and for all of them once the
// account is saturated and a node asks once per period.
func (a *Account) wish(plan *Plan, now int64) sizing {
	c := a.contact()
	s := sizing{goal: target(c.demand.count, c.unit), least: c.unit, divisor: a.sharers()}
	period := a.pacedGoal(plan)
	switch {
	case c.saturated:
		s.goal, s.divisor = period, 1
	case a.freeNow(plan, now)/s.divisor < period:
		s.goal, s.divisor = period, tight
	}
	return s
}

// tight is the divisor of an account in which shares have become too small. It is
// a lone node's share as well, whose grants are judged alike.
const tight = 2

// freeNow returns what is free, as the store last told: all, if it would be by now.
func (a *Account) freeNow(plan *Plan, now int64) int64 {
	if a.full(now) {
		return plan.Burst
	}
	return a.toldFree()
}

// sharers is what a node's share of the free tokens is divided by: twice the
// fleet, so that all of it could ask at once and half would still be free.
func (a *Account) sharers() int64 { return 2 * int64(a.limiter().history.M()) }

// pacedGoal returns the tokens, in whole costs, for the demand of the next
// period; 0 if no request is expected soon.
func (a *Account) pacedGoal(plan *Plan) int64 {
	c := a.contact()
	if target(c.demand.count, c.unit) == 0 {
		return 0
	}
	return wholeCosts(c.demand.over(a.pace(plan), plan.horizon), c.unit)
}

// pace returns the account's pacing period.
func (a *Account) pace(plan *Plan) int64 {
	c := a.contact()
	costs := c.demand.count / float64(c.unit)
	return pace(a.limiter().history.M(), c.unit, plan.ratePerNano(), plan.fill, float64(plan.horizon)/costs)
}

// mayWant reports whether a slice can be used at all: not by an account that
// is about to go, and not in the last moments of a window.
func (a *Account) mayWant(plan *Plan, now int64) bool {
	if !plan.Sliced || a.contact().loner || a.dead || a.limiter().closed.Load() {
		return false
	}
	left, known := a.windowLeft(plan, now)
	return !known || left > 4*slice.Guard(0)
}

// charge moves what was used without asking into the settle: the floor's use,
// as far as it sits on top of the limit, and what the fallback admitted.
func (a *Account) charge(u *slice.Usage, plan *Plan, now int64) {
	c := a.contact()
	u.Charged = c.charged
	if a.floored {
		u.Charged += plan.FloorShare * a.ownFloor().Owed(now, plan.Floor, &a.limiter().history)
	}
	switch {
	case a.limiter().policy == FailOpen:
		u.Fallback = min(c.fallback, float64(plan.Burst)/a.fleetLately(now))
	case c.bucketAt != 0:
		u.Fallback = min(c.fallback, a.fallbackLack(now))
	default:
		u.Fallback = c.fallback
	}
	c.charged, c.fallback = 0, 0
	if (u.Charged != 0 || u.Fallback != 0) && u.Tag == (slice.Tag{}) {
		u.Tag.Window = c.chargeWindow
	}
}

// leaveOldWindow forgets what belongs to a window that is over: its slice, under
// whose lease nothing could be charged to the window that has begun, and what is to be
// charged to the old one. No settle may be under way.
func (a *Account) leaveOldWindow(plan *Plan, now int64) {
	a.turnWindow(plan, now)
	c := a.contact()
	if old := c.lease.Window(); old != 0 && old < c.chargeWindow && a.Cell.Expired(&a.limiter().s.Dead) {
		a.lapse()
	}
}

// turnWindow forgets what is to be charged to a window that is over, before anything
// is to be charged to the next.
func (a *Account) turnWindow(plan *Plan, now int64) {
	if plan.Rule.Window == 0 {
		return
	}
	w, c := a.lane().window(plan.Rule.Window, now), a.contact()
	if w == 0 || c.chargeWindow == w {
		return
	}
	if c.chargeWindow != 0 {
		c.charged, c.fallback = 0, 0
	}
	c.chargeWindow = w
}

// stop ends what an account was about whose limit is 0 by now. The store could
// not settle it by such a limit, so it lapses. The caller holds mu, and no settle
// has been sent.
func (a *Account) stop(now int64) {
	c := a.contact()
	a.count(now)
	a.lapse()
	c.charged, c.fallback = 0, 0
	for _, w := range c.waiting {
		switch {
		case w.left:
		case w.cost == 0:
			w.done <- Verdict{Allowed: true}
		default:
			a.limiter().Counts.exact(false)
			c.deny(1, now)
			w.done <- Verdict{Source: FromStore, Retry: slice.Never}
		}
	}
	c.waiting = nil
}

// spent reports whether a slice of unknown standing has served its time: its
// lease is over, or its last token is used. Then a new one can begin; what the
// store still has of the old one it forgets by itself.
func (a *Account) spent() bool {
	return a.contact().lease.InDoubt() && (a.Cell.Expired(&a.limiter().s.Dead) || a.Cell.Tokens() == 0)
}

// lapse gives up the lease without telling the store. What is left of its tokens is
// nobody's: the store forgets them with the lease.
func (a *Account) lapse() {
	lost, spent := a.contact().lease.Lapse(&a.Cell)
	a.tally(spent, a.limiter().s.Now())
	a.limiter().Counts.Expired.Add(uint64(lost))
	a.contact().counted, a.contact().outgrown = 0, false
}
