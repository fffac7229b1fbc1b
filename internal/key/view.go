package key

import "time"

// View is what a node knows of one key at a moment, for people who ask why it decides
// as it does. Spans are from that moment on. Tokens are of this node alone unless it says otherwise.
type View struct {
	Plan *Plan // in force
	Own  bool  // it is the key's own

	Slice     int64         // tokens that can be taken from the slice
	SliceEnds time.Duration // until its lease ends; 0 without one
	InDoubt   bool          // the outcome of a settle is unknown: the slice is not reported any more
	Stale     int64         // tokens of a slice whose lease is over here: the next settle returns them
	Spent     int64         // tokens of the slice that are used and were not reported yet

	Floor      float64       // tokens that can be taken from the floor
	FloorOff   time.Duration // for how long it is suspended
	FloorWaits bool          // the node is not registered, or not for long enough

	DeniedCost int64         // costs from this on are denied from memory; 0: none
	DeniedFor  time.Duration // for how long
	Exhausted  bool          // the node polls for the key
	NextLook   time.Duration // until the node looks at the key without a request; 0: not planned

	Demand  float64 // tokens per second attempted, over a horizon
	Denials float64 // requests per second denied, over ten seconds or so
	Denied  uint64  // requests denied since the key came in touch with the store

	Owed     float64 // tokens that the next settle charges
	Admitted float64 // tokens that the failure policy admitted, which it reports
	Share    float64 // tokens that FailLocal could admit now

	InFlight bool // a settle is queued or under way
	Waits    bool // it is under way: a request that needs the store waits for its end first
	Overdue  bool // for longer than a request may: the policy decides at once
	Down     bool // the key's part of the store is silent

	Free   int64         // tokens of the whole account, as far as this node knows
	FullIn time.Duration // until all of it is free

	Remaining  int64         // what a Result says: tokens that are free or in the slice
	ResetAfter time.Duration // until all are free
}

// View describes a key; s is nil for one that is not in touch with the store. It changes
// nothing but that counts are brought up to date.
func (t *Step) View(s *State) View {
	v := View{Plan: t.Plan, Slice: t.Cell.Alive(t.Dead), Down: t.Down, FullIn: t.Known.FullIn(t.Now)}
	if t.Plan.Stored() {
		v.Free = t.Known.Free(t.Plan, t.Now)
	}
	_, v.Remaining, v.ResetAfter = t.Known.Read(t.Now).View(t.Plan, v.Slice)
	t.viewFloor(s, &v)
	if s == nil {
		v.Share = t.share(&Fallback{}).level(t)
		return v
	}
	s.count(t)
	v.Share = t.share(&s.fallback).level(t)
	s.viewSettles(t, &v)
	s.viewRequests(t, &v)
	return v
}

// viewFloor describes the floor, or the one that the key's first request would start.
func (t *Step) viewFloor(s *State, v *View) {
	if t.Plan.Floor.Cap == 0 || t.untracked() {
		return
	}
	history, f := t.Fleet.History(), *t.ownFloor() // a copy: a look starts none
	if t.Known.FloorStarted {
		v.Owed = t.Plan.FloorShare * f.Served(t.Now, t.Plan.Floor, history)
	} else {
		level, _ := t.Fleet.Fresh().Level(t.Now, t.Plan.Floor, history)
		f.Start(level, t.Now)
		f.NotBefore(t.Fleet.FloorFrom())
	}
	v.FloorOff, v.FloorWaits = time.Duration(f.Off(t.Now)), !t.Fleet.FloorOpen(t.Now)
	if t.hasFloor(s) {
		v.Floor = f.Level(t.Now, t.Plan.Floor, history)
	}
}

// viewSettles describes what is lent, owed and under way.
func (s *State) viewSettles(t *Step, v *View) {
	lease := &s.hold.lease
	v.InDoubt = lease.InDoubt()
	if lease.Holds() {
		v.SliceEnds = time.Duration(max(t.Cell.Left(t.Now), 0))
	}
	if lease.Holds() && !v.InDoubt {
		v.Spent = lease.Unreported(t.Cell)
		if t.Cell.Expired(t.Dead) {
			v.Stale = t.Cell.Tokens()
		}
	}
	v.Owed += s.debt.charged
	v.Admitted = s.debt.admitted
	v.InFlight, v.Waits, v.Overdue = s.inflight.busy(), s.inflight.phase == queued, s.overdue(t)
	if t.Due != 0 && !s.inflight.busy() {
		v.NextLook = time.Duration(max(t.Due-t.Now, 1))
	}
}

// viewRequests describes what is remembered of requests, which were counted just now.
func (s *State) viewRequests(t *Step, v *View) {
	if s.poll.denies(t.Now) {
		v.DeniedCost, v.DeniedFor = s.poll.deny.Cost, time.Duration(s.poll.deny.Until-t.Now)
	}
	v.Exhausted = s.poll.exhausted
	v.Denials, v.Denied = s.denials.rate(), s.denials.total
	if h := t.Plan.horizon; h > 0 {
		v.Demand = s.demand.tokens.over(int64(time.Second), h)
	}
}
