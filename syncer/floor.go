package syncer

import "github.com/hybridlimit/hybrid/precheck"

// TakeFloor admits n tokens from the key's floor.
func (a *Account) TakeFloor(n, now int64) bool {
	l := a.limiter()
	if !l.floorOpen(now) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	whole := a.Plan().Floor
	if c := a.contact(); a.dead || c != nil && c.loner || whole.Cap == 0 {
		return false
	}
	a.startFloor(whole, now)
	if !a.ownFloor().Take(now, n, whole, &l.history) {
		return false // who asks the store then is who touches it
	}
	a.touch()
	l.Counts.Floor.Add(1)
	a.floorTaken(n, now)
	return true
}

// floorTaken notes what the floor served of an account in contact, whose slice
// is made for all its demand. The take that leaves the floor unable to serve
// another asks for the refill that the floor has put off. The caller holds mu.
func (a *Account) floorTaken(n, now int64) {
	c := a.contact()
	if c == nil {
		return
	}
	a.noteCost(n)
	a.attempted(n, now)
	c.earn(1)
	c.idleSince = now
	a.refill(now)
}

// floorServes reports whether the next request can be served by the floor, so
// that a slice can be refilled later: when what it has left lasts for two round
// trips. The caller holds mu.
func (a *Account) floorServes(now int64) bool {
	plan, c, l := a.Plan(), a.contact(), a.limiter()
	if plan.Floor.Cap == 0 || c.loner || !l.floorOpen(now) {
		return false
	}
	a.startFloor(plan.Floor, now)
	lasts := float64(c.unit) + c.demand.over(2*l.s.latency.Load(), plan.horizon)
	return a.ownFloor().Level(now, plan.Floor, &l.history) >= lasts
}

// startFloor gives a floor its first level when it is first used, which is
// after the account was stored: by then an account of the same key that was
// evicted has spoiled the fresh level. The caller holds mu.
func (a *Account) startFloor(whole precheck.Size, now int64) {
	if !a.floored {
		level, _ := a.limiter().fresh.Level(now, whole, &a.limiter().history)
		a.floor.Start(level, now)
		a.floored = true
	}
}

// ownFloor returns the floor as the node's registration allows it: one from
// before the registration starts again, empty, whoever looks at it first. The
// caller holds mu.
func (a *Account) ownFloor() *precheck.Floor {
	a.floor.NotBefore(a.limiter().floorFrom.Load())
	return &a.floor
}
