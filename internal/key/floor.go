package key

import "github.com/hybridlimit/hybrid/precheck"

// This file is the floor of one key on this node: what it may admit without asking,
// while the key is far from its limit. It is under the account's lock.

// TakeFloor admits n tokens from the floor of a key that is not in touch with the store.
func (t *Ground) TakeFloor(n int64) bool {
	if t.Plan.Floor.Cap == 0 || !t.Fleet.FloorOpen(t.Now) {
		return false
	}
	t.startFloor()
	if !t.ownFloor().Take(t.Now, n, t.Plan.Floor, t.Fleet.History()) {
		return false
	}
	t.use(t.Plan.FloorShare * float64(n))
	return true
}

// TakeFloor admits n tokens from the floor.
func (s *State) TakeFloor(t *Step, n int64) bool {
	if !t.hasFloor(s) || !t.Ground.TakeFloor(n) {
		return false
	}
	t.Tally.Floor++
	s.floorServed(t, n)
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
func (t *Ground) startFloor() {
	if !t.Known.FloorStarted {
		level, _ := t.Fleet.Fresh().Level(t.Now, t.Plan.Floor, t.Fleet.History())
		t.Floor.Start(level, t.Now)
		t.Known.FloorStarted = true
	}
}

// ownFloor returns the floor as the node's registration allows it: one from before the
// registration starts again, empty.
func (t *Ground) ownFloor() *precheck.Floor {
	t.Floor.NotBefore(t.Fleet.FloorFrom())
	return t.Floor
}

// FloorFull reports whether the floor is as good as a new one.
func (t *Ground) FloorFull() bool {
	return t.Plan.Floor.Cap == 0 || !t.Known.FloorStarted || t.ownFloor().Full(t.Now, t.Plan.Floor, t.Fleet.History())
}

// floorOwes returns what the account was not told of the floor's use, and forgets it.
func (t *Ground) floorOwes() float64 {
	if !t.Known.FloorStarted {
		return 0
	}
	return t.ownFloor().Owed(t.Now, t.Plan.Floor, t.Fleet.History())
}

// floorServedLately returns what the floor has served and not earned again.
func (t *Ground) floorServedLately() float64 {
	if !t.Known.FloorStarted {
		return 0
	}
	return t.ownFloor().Served(t.Now, t.Plan.Floor, t.Fleet.History())
}

// suspendFloor turns the floor off until a moment.
func (t *Ground) suspendFloor(until int64) {
	if t.Plan.Floor.Cap > 0 {
		t.startFloor()
		t.Floor.Suspend(until)
	}
}

// ReturnFloor gives back n tokens that the floor admitted.
func (t *Ground) ReturnFloor(n int64) bool {
	if !t.ownFloor().Put(n) {
		return false
	}
	t.use(-t.Plan.FloorShare * float64(n))
	return true
}

// use counts what this node took without asking.
func (t *Ground) use(tokens float64) {
	left, _ := t.windowLeft()
	t.Known.Use(t.Plan, tokens, t.Now, left)
}
