package syncer

import (
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is what a node does with an account of its own accord, when the
// agenda says so. Every operation among it is paid by the account's requests;
// what they cannot pay lapses with its lease.

// act looks at an account that is due, and plans the next look.
func (a *Account) act(now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.contact()
	if c == nil || c.inflight {
		return // the end of the settle plans the next look
	}
	down := a.down()
	if down && a.dead {
		a.letGo() // or an outage would keep all that it evicts
		return
	}
	if down {
		a.limiter().s.agenda.set(a, now+a.limiter().s.dice.jitter(a.limiter().s.agenda.downtime()))
		return
	}
	marked := c.lease.InDoubt()
	switch {
	case a.spent():
		a.lapse()
	case c.outgrown:
		if !a.attempt(intent{kind: giveBack}, now) && (!c.lease.Holds() || a.Cell.Expired(&a.limiter().s.Dead)) {
			a.lapse()
		}
	case c.saturated && !marked:
		a.keepPace(now)
	case c.charged != 0 || c.fallback != 0:
		a.attempt(intent{kind: serve}, now)
	case c.lease.Holds() && !marked:
		a.keepLease(now)
	}
	a.schedule(now)
}

// letGo forgets a retired account. What it held lapses with its lease, what it
// owes is not told. The caller holds mu.
func (a *Account) letGo() {
	a.limiter().s.agenda.set(a, 0)
	a.lapse()
	a.inTouch.Store(nil)
}

// keepPace sends the paced settle of a saturated account that had demand since
// the last one, or has something to tell. An account that is hardly asked for any
// more is left to its next request.
func (a *Account) keepPace(now int64) {
	c, plan := a.contact(), a.Plan()
	a.count(now)
	switch {
	case a.pacedGoal(plan) == 0:
		c.saturated = false
		return
	case c.attempts > 0 || c.charged != 0 || c.fallback != 0:
		a.attempt(intent{kind: paced}, now)
	case c.lease.Holds():
		a.keepLease(now)
	}
	a.askAfter(a.limiter().s.dice.jitter(a.pace(plan)), plan, now)
}

// keepLease renews the lease of a slice in use before it ends, and returns an
// idle slice, if anybody may have a use for it: where much is free it lapses.
func (a *Account) keepLease(now int64) {
	c, plan := a.contact(), a.Plan()
	tokens, horizon := a.Cell.Tokens(), plan.horizon
	if tokens != c.idleTokens {
		c.idleTokens, c.idleSince = tokens, now
	}
	wanted := a.wanted(plan, now)
	switch {
	case a.Cell.Expired(&a.limiter().s.Dead):
		if !wanted || tokens == 0 || !a.attempt(intent{kind: giveBack}, now) {
			a.lapse()
		}
	case now-c.idleSince >= horizon:
		if wanted {
			a.attempt(intent{kind: giveBack}, now)
		}
	case a.floorServes(now):
		// a refill comes when the floor has served
	case a.Cell.Left(now) <= 2*horizon && a.outlives(now+2*horizon, now):
		a.attempt(intent{kind: refill}, now)
	}
}

// wanted reports whether others may have a use for what an idle slice holds, by
// what the store last told: little is free, or much of what is used is lent. What
// is left of a window at its end is lost.
func (a *Account) wanted(plan *Plan, now int64) bool {
	burst := float64(plan.Rule.Burst)
	return plan.Rule.Window > 0 || 2*float64(a.freeNow(plan, now)) < burst || 4*float64(a.contact().lent) >= burst
}

// outlives reports whether a renewed lease would last beyond a moment: in a
// fixed window none lasts beyond the window.
func (a *Account) outlives(moment, now int64) bool {
	left, known := a.windowLeft(a.Plan(), now)
	return !known || now+int64(left-slice.Guard(left)) > moment
}

// schedule plans the next look. The caller holds mu.
func (a *Account) schedule(now int64) {
	c := a.contact()
	if c.inflight {
		return
	}
	if a.dead {
		c.saturated = false // it serves no request any more
	}
	horizon := max(a.Plan().horizon, int64(10*time.Millisecond))
	due := a.limiter().s.aligned(now, a.limiter().s.dice.jitter(horizon))
	if a.debtIsOver(now) {
		c.charged, c.fallback = 0, 0
	}
	switch {
	case c.outgrown:
		due = now + a.limiter().s.dice.jitter(int64(ProbeInterval))
	case c.saturated && !c.lease.InDoubt():
		due = max(c.next, now+1)
	case c.charged != 0 || c.fallback != 0:
		due = now + a.limiter().s.tick()
		if c.credit < 1 { // a request must pay first, and will tell it
			due = now + a.limiter().s.dice.jitter(max(horizon, int64(ProbeInterval)))
		}
	case c.lease.Holds():
		if now-c.idleSince >= horizon { // nothing becomes of it before it may have to be renewed
			due = max(due, now+a.Cell.Left(now)-2*horizon)
		}
	case a.restful(now):
		a.limiter().s.agenda.set(a, 0)
		a.count(now)
		a.inTouch.Store(nil)
		return
	}
	a.limiter().s.agenda.set(a, due)
}

// debtIsOver reports whether what the account owes is not worth telling any more:
// there is no request to pay for it, and either none will come or, had it been
// told when it was last tried, it would have drained by now.
func (a *Account) debtIsOver(now int64) bool {
	c := a.contact()
	if c.charged == 0 && c.fallback == 0 {
		return false
	}
	return (a.dead || c.loner) && a.limiter().closed.Load() || c.credit < 1 && (a.dead || now-c.sentAt >= a.Plan().fill)
}

// restful reports whether there is nothing to do about the account: nothing is
// lent, owed or waited for, and no request has needed the store for a horizon.
// Then the contact can be dropped. What it remembers for later requests is of no use
// in an account that gets none.
func (a *Account) restful(now int64) bool {
	c := a.contact()
	switch {
	case a.busy():
		return false
	case a.dead:
		return true
	case now-c.askedAt <= a.Plan().horizon:
		return false
	}
	paid := c.bucketAt == 0 || a.fallbackLack(now) == 0
	return c.loner || paid && now >= c.promise
}
