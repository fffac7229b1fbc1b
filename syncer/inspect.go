package syncer

import "time"

// State is what a node knows of one key at a moment, for people who want to know why
// it decides as it does. Spans are ns from that moment on. Tokens are of the node
// alone unless it says otherwise.
type State struct {
	Plan *Plan // in force
	Own  bool  // it is the key's own

	Slice     int64 // tokens that can be taken from the slice
	SliceEnds int64 // until its lease ends; 0 without one
	Marked    bool  // the outcome of a settle is unknown: the slice is not spoken of any more
	Stale     int64 // tokens of a slice whose lease is over here: the next settle gives them back
	Spent     int64 // tokens of the slice that are used and were not reported yet

	Floor      float64 // tokens that can be taken from the floor
	FloorOff   int64   // for so long it is suspended
	FloorWaits bool    // the node is not registered, or not for long enough

	DeniedCost int64 // costs from this on are denied from memory; 0: none
	DeniedFor  int64 // for so long
	Saturated  bool  // the key is asked for by the pace
	NextLook   int64 // until the node looks at the key of its own accord, and asks if there is something to ask; 0: not planned

	Demand  float64 // tokens per second attempted, over a horizon
	Denials float64 // requests per second denied, over ten seconds or so

	Owed     float64 // tokens that the next settle charges
	Fallback float64 // tokens that the policy has admitted, which it tells of
	Share    float64 // tokens that FailLocal could admit now

	InFlight bool // a settle is queued or under way
	Waits    bool // it is under way: a request that needs the store waits for its end first
	Overdue  bool // for longer than a request may: the policy decides at once
	Down     bool // nobody waits for this part of the store

	Free int64 // tokens of the whole account, as last told; all, if it would have filled since
	Full int64 // until it is full again, as last told
}

// Inspect returns what the node knows of a key; known is false for a key that it does
// not remember: then the state is that of a new one. user is the key as the caller
// gave it. The state is not changed, but that counts are brought up to date.
func (l *Limiter) Inspect(key, user string) (st State, known bool) {
	now := l.s.Now()
	if a, ok := l.table.Load(key); ok {
		a.Replan(now)
		if st, ok = a.state(now); ok {
			return st, true
		}
	}
	var own *Plan
	if l.planFor != nil {
		own = l.planFor(user)
	}
	st, _ = l.newAccount(key, user, own, now).state(now)
	return st, false
}

// state describes an account that is in use; false if it was retired.
func (a *Account) state(now int64) (st State, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead {
		return st, false
	}
	lim, plan := a.limiter(), a.Plan()
	st = State{
		Plan: plan, Own: a.seat.Load().own != nil,
		Slice: a.Cell.Alive(&lim.s.Dead),
		Share: a.shareLeft(now), Down: a.down(),
		Full: max(a.fullAt.Load()-now, 0),
	}
	if !plan.Never {
		st.Free = a.freeNow(plan, now)
	}
	a.stateOfFloor(&st, plan, now)
	if c := a.contact(); c != nil {
		a.count(now)
		a.stateOfSettles(&st, now)
		a.stateOfMemory(&st, c, now)
	}
	return st, true
}

// shareLeft returns the tokens that FailLocal could admit. It makes no bucket.
func (a *Account) shareLeft(now int64) float64 {
	size := a.fallbackSize(now)
	c := a.contact()
	if c == nil || c.bucketAt == 0 {
		return a.fallbackStart(size, now)
	}
	bucket := c.bucket
	return bucket.Level(now, size)
}

// stateOfFloor describes the floor, or the one that the key's first request would
// start.
func (a *Account) stateOfFloor(st *State, plan *Plan, now int64) {
	lim := a.limiter()
	if c := a.contact(); plan.Floor.Cap == 0 || c != nil && c.loner {
		return
	}
	f := *a.ownFloor() // a copy: a look starts none
	if a.floored {
		st.Owed = plan.FloorShare * f.Served(now, plan.Floor, &lim.history)
	} else {
		level, _ := lim.fresh.Level(now, plan.Floor, &lim.history)
		f.Start(level, now)
		f.NotBefore(lim.floorFrom.Load())
	}
	st.FloorOff, st.FloorWaits = f.Off(now), !lim.floorOpen(now)
	if !st.FloorWaits {
		st.Floor = f.Level(now, plan.Floor, &lim.history)
	}
}

// stateOfSettles describes what is lent, owed and under way.
func (a *Account) stateOfSettles(st *State, now int64) {
	c := a.contact()
	st.Marked = c.lease.InDoubt()
	if c.lease.Holds() {
		st.SliceEnds = max(a.Cell.Left(now), 0)
	}
	if c.lease.Holds() && !st.Marked {
		st.Spent = c.lease.Unreported(&a.Cell)
	}
	if c.lease.Holds() && !st.Marked && a.Cell.Expired(&a.limiter().s.Dead) {
		st.Stale = a.Cell.Tokens()
	}
	st.Owed += c.charged
	st.Fallback = c.fallback
	st.InFlight, st.Waits, st.Overdue = c.inflight, c.inflight && !c.lazy, a.overdue(now)
	if c.due != 0 && !c.inflight {
		st.NextLook = max(c.due-now, 1)
	}
}

// stateOfMemory describes what is remembered of requests. It was counted just now.
func (a *Account) stateOfMemory(st *State, c *contact, now int64) {
	if m := c.memo.Load(); m != nil && now < m.Until {
		st.DeniedCost, st.DeniedFor = m.Cost, m.Until-now
	}
	st.Saturated = c.saturated
	st.Denials = c.denialRate()
	if h := st.Plan.horizon; h > 0 {
		st.Demand = c.demand.over(int64(time.Second), h)
	}
}
