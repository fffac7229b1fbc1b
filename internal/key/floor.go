package key

import "github.com/hybridlimit/hybrid/precheck"

// This file is the floor of one key on this node: what it may admit without asking,
// while the key is far from its limit. It is under the account's lock.

// TakeFloor admits n tokens from the floor.
func (t *Step) TakeFloor(s *State, n int64) bool {
	if !t.hasFloor(s) {
		return false
	}
	t.startFloor()
	if !t.ownFloor().Take(t.Now, n, t.Plan.Floor, t.Fleet.History()) {
		return false
	}
	t.Tally.Floor++
	t.use(t.Plan.FloorShare * float64(n))
	if s != nil {
		s.floorServed(t, n)
	}
	return true
}

// hasFloor reports whether the floor may serve. It does not while a charge is to be
// told: the next request takes it to the store, or one charge after the other would
// go unnoticed behind the floor.
func (t *Step) hasFloor(s *State) bool {
	if t.Plan.Floor.Cap == 0 || t.Shared != nil || t.Retired || !t.Fleet.FloorOpen(t.Now) {
		return false
	}
	return s == nil || s.debt.charged <= 0
}

// startFloor gives the floor its first level when it is first used, which is after
// the account was stored: by then an evicted account of the same key has spoiled
// the fresh level.
func (t *Step) startFloor() {
	if !t.Known.FloorStarted {
		level, _ := t.Fleet.Fresh().Level(t.Now, t.Plan.Floor, t.Fleet.History())
		t.Floor.Start(level, t.Now)
		t.Known.FloorStarted = true
	}
}

// ownFloor returns the floor as the node's registration allows it: one from before the
// registration starts again, empty.
func (t *Step) ownFloor() *precheck.Floor {
	t.Floor.NotBefore(t.Fleet.FloorFrom())
	return t.Floor
}

// FloorFull reports whether the floor is as good as a new one.
func (t *Step) FloorFull() bool {
	return t.Plan.Floor.Cap == 0 || !t.Known.FloorStarted || t.ownFloor().Full(t.Now, t.Plan.Floor, t.Fleet.History())
}

// floorOwes returns what the account was not told of the floor's use, and forgets it.
func (t *Step) floorOwes() float64 {
	if !t.Known.FloorStarted {
		return 0
	}
	return t.ownFloor().Owed(t.Now, t.Plan.Floor, t.Fleet.History())
}

// floorServedLately returns what the floor has served and not earned again.
func (t *Step) floorServedLately() float64 {
	if !t.Known.FloorStarted {
		return 0
	}
	return t.ownFloor().Served(t.Now, t.Plan.Floor, t.Fleet.History())
}

// suspendFloor turns the floor off until a moment.
func (t *Step) suspendFloor(until int64) {
	if t.Plan.Floor.Cap > 0 {
		t.startFloor()
		t.Floor.Suspend(until)
	}
}

// ReturnFloor gives back n tokens that the floor admitted.
func (t *Step) ReturnFloor(n int64) bool {
	if !t.ownFloor().Put(n) {
		return false
	}
	t.use(-t.Plan.FloorShare * float64(n))
	return true
}

// use counts what this node took without asking.
func (t *Step) use(tokens float64) {
	left, _ := t.windowLeft()
	t.Known.Use(t.Plan, tokens, t.Now, left)
}
