package key

import "github.com/hybridlimit/hybrid/slice"

// This file is what callers do to a key besides asking for admission: charge, refund,
// undo, reset, flush, another limit, eviction.

// Charge takes n tokens that were used without asking: from the slice what it has, and
// the rest with the next settle, which a tick sends at the latest. The floor pays
// for the rest as well, so that it does not serve a key that is in debt.
func (s *State) Charge(t *Step, n int64) {
	var taken, left int64
	// By the clock, as the watermark may be late where the process stood still. A charge
	// above the burst is a debt, which ends at 2·B: what the slice paid of it would be cut off.
	if t.Cell.Left(t.Now) > 0 && n <= t.Plan.Rule.Burst {
		taken, left = t.Cell.TakeUpTo(n, t.Dead)
	}
	if taken > 0 && t.Cell.Crossed(left, taken) {
		s.Refill(t)
	}
	rest := float64(n - taken)
	if rest == 0 {
		return
	}
	s.debt.enter(t.window())
	s.debt.charge(rest)
	t.use(rest)
	if t.Plan.Floor.Cap > 0 && !t.untracked() {
		t.startFloor()
		t.ownFloor().Lower(rest)
	}
	s.tellSoon(t)
}

// Refund gives back n tokens of an admission that did not happen after all: to the slice
// if they can have come from it, else to what the policy admitted and the store was not
// told of, and the rest with the next settle.
func (s *State) Refund(t *Step, n int64) {
	if s.hold.lease.Return(t.Cell, n, t.Dead) {
		return
	}
	t.use(-float64(n))
	rest := s.unAdmit(t, float64(n))
	if rest == 0 {
		return
	}
	s.debt.enter(t.window())
	s.debt.charge(-rest)
	s.tellSoon(t)
}

// tellSoon sends a settle within a tick. A charge or refund is a request, and pays for it.
func (s *State) tellSoon(t *Step) {
	s.budget.add(1)
	if !s.inflight.busy() {
		t.timer(TimerBy, t.Now+t.nextTick())
	}
}

// unAdmit takes tokens out of what the failure policy has admitted and the store was not
// told of, and returns the rest. If all of it went to the store instead, it would
// give back there what is not charged in full, or not yet.
func (s *State) unAdmit(t *Step, tokens float64) (rest float64) {
	part := min(tokens, s.debt.admitted)
	s.debt.admitted -= part
	t.share(&s.fallback).putBack(t, part)
	return tokens - part
}

// Undo gives back n tokens that a request took at a moment and on a path, because
// another limit denied the request. It is part of that request, and sent at once. What
// was taken in a window that is over is gone with the window.
func (s *State) Undo(t *Step, n int64, path Path, takenAt int64) {
	window := t.windowAt(takenAt)
	if window != t.window() || t.Plan.Always {
		return
	}
	tokens := float64(n)
	switch {
	case path == PathFloor && t.ReturnFloor(n):
		return
	case path == PathFloor:
		tokens *= t.Plan.FloorShare // the part that the account was charged
	case path == PathFallback:
		t.use(-tokens)
		tokens = s.unAdmit(t, tokens)
	case s.hold.lease.Window() == window && s.hold.lease.Return(t.Cell, n, t.Dead):
		return
	default:
		t.use(-tokens)
		tokens = s.unAdmit(t, tokens)
	}
	at := t.storeTime(takenAt)
	if tokens == 0 || at == 0 {
		return // without the store's clock nothing was taken there
	}
	s.debt.enter(window)
	s.debt.giveBack(tokens, at-t.Timing.Latency/1000, window) // half a round trip is the clock's error
	s.budget.add(1)
	if !t.Down {
		s.begin(t, purpose{}, SendNow)
	} else if !s.inflight.busy() {
		t.timer(EnsureTimer, t.Now+t.jittered(int64(ProbeInterval)))
	}
}

// Reset frees all that the key has used but what other nodes hold, and forgets this
// node's denials. The waiter hears when the store has done it.
func (s *State) Reset(t *Step) *Waiter {
	s.ForgetUse(t)
	s.poll.exhausted, s.poll.promisedRetryAt = false, 0
	s.dropDenials(t)
	w := NewWaiter(0)
	w.reset = true
	s.inflight.waiting = append(s.inflight.waiting, w)
	s.begin(t, purpose{}, SendNow)
	return w
}

// ForgetUse drops what the store was not told of. What a settle under way says of
// the account is over as well.
func (s *State) ForgetUse(t *Step) {
	s.debt.forget()
	s.inflight.resetInFlight = s.inflight.phase == queued
	t.ForgetFloor()
}

// ForgetFloor drops what the floor of a key owes the account.
func (t *Step) ForgetFloor() {
	t.floorOwes()
	t.Known.Start(t.Now)
}

// LimitChanged drops what followed from the old limit: denials and the slice.
func (s *State) LimitChanged(t *Step) {
	s.poll.exhausted, s.poll.promisedRetryAt = false, 0
	s.dropDenials(t)
	if !t.Plan.Stored() && s.inflight.phase != queued { // of what waits in the background nothing has been said yet
		s.endWithoutStore(t)
	}
	if s.attempt(t, purpose{kind: giveBack}) || !s.inflight.busy() && !s.hold.lease.Holds() {
		return
	}
	s.inflight.limitChanged = true // the settle that is queued, or the next, returns it
	if !s.inflight.busy() {
		t.timer(TimerBy, t.Now+t.jittered(int64(ProbeInterval)))
	}
}

// Flush joins the next settle if there is something to tell; else it returns no waiter.
// What a user asks for is settled whether or not requests have paid for it.
func (s *State) Flush(t *Step) *Waiter {
	if !s.Tells() || t.Down {
		return nil
	}
	w := NewWaiter(0)
	s.inflight.waiting = append(s.inflight.waiting, w)
	s.begin(t, purpose{}, SendNow)
	return w
}

// Tells reports whether the store has something to hear of the key.
func (s *State) Tells() bool {
	return s.inflight.busy() || s.hold.lease.Holds() || s.debt.owes()
}

// Evict returns the slice of an account that has left the table, if its requests have
// paid for that, and tells what it owes. Otherwise the store forgets the slice with its
// lease, and the node at once: a flood of keys must not leave more than MaxKeys of them.
func (s *State) Evict(t *Step) {
	if s.inflight.busy() {
		return
	}
	if !s.Tells() || !s.attempt(t, purpose{kind: giveBack}) {
		s.Discard(t)
	}
}

// Discard forgets the key. What it held ends with its lease; what it owed is lost.
func (s *State) Discard(t *Step) {
	t.Lost = t.Lost || s.debt.owes()
	t.timer(StopTimer, 0)
	s.abandon(t)
	t.Idle = true
}

// NotSent returns what a composed settle cost that was not sent.
func (s *State) NotSent() { s.budget.refund() }

// SentAt returns when the settle under way was sent, ns.
func (s *State) SentAt() int64 { return s.inflight.sentAt }

// InBackground reports whether a settle is queued that no request waits for.
func (s *State) InBackground() bool { return s.inflight.phase == background }

// Pristine reports whether the state remembers nothing that a new one would not know: no
// lease, no debt, no denial, no bucket that is not full.
func (s *State) Pristine(t *Step) bool {
	return !s.poll.denies(t.Now) && !s.hold.lease.Holds() && !s.debt.owes() && s.fallback.started == 0
}

// ShareLacks reports whether the failure policy's bucket is not full.
func (s *State) ShareLacks(t *Step) bool { return s.fallback.lacks(t) > 0 }

// Unseen reports whether the slice was used since the demand was last counted.
func (s *State) Unseen(cell *slice.Cell) bool {
	return s.hold.lease.Unreported(cell) != s.demand.counted
}

// Count brings the counts of the slice and the deny cache up to date.
func (s *State) Count(t *Step) { s.count(t) }
