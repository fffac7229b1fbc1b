package slice

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// How far a full ring looks for an entry that can leave. The bounds keep the
// ring's lock short: a decision about a new key waits for it.
const (
	lookahead  = 16  // slots looked at for an entry that remembers nothing
	reach      = 128 // slots that the hand may pass for one that was not touched
	sweepBatch = 64  // slots that a sweep visits before it lets go of the lock
)

// Ring bounds the entries of all tables of a node. It keeps them in the order
// of the second-chance algorithm: a hand goes round, an entry that was touched
// since the hand last came by stays, and the first that was not leaves.
//
// Ring and tables agree because both change under the ring's lock: an entry
// that is in a table has a slot. The converse does not hold: an entry that its
// owner retired and unlinked keeps its slot until the hand comes by.
type Ring[E Entry] struct {
	max       int
	evictions atomic.Uint64 // a statistic: written under mu, read by anyone
	waiting   atomic.Int32  // callers who want mu for a new key: a sweep lets them go first. Only a hint

	mu    sync.Mutex
	slots slots[E]
	hand  int // the next slot to visit; it may stand one past the last
}

// NewRing returns a ring for at most max entries, and at least one.
func NewRing[E Entry](max int) *Ring[E] { return &Ring[E]{max: atLeastOne(max)} }

func atLeastOne(n int) int { return max(n, 1) }

// Len returns the slots in use: the entries of all tables, and those that their
// owners removed since the hand last came by.
func (r *Ring[E]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slots.n
}

// Evictions returns how many entries have left to make room for others.
func (r *Ring[E]) Evictions() uint64 { return r.evictions.Load() }

// admit stores e in t under key, unless the key is there by now.
func (r *Ring[E]) admit(t *Table[E], key string, e E) (_ E, evicted []E, stored bool) {
	r.waiting.Add(1)
	r.mu.Lock()
	r.waiting.Add(-1)
	defer r.mu.Unlock()
	if have, ok := t.m.get(key); ok {
		return have, nil, true
	}
	if r.slots.n < r.max {
		r.slots.push(e)
	} else {
		i, forced := r.victim()
		if i < 0 {
			return e, nil, false
		}
		old := r.slots.swap(i, e)
		old.Unlink()
		r.evictions.Add(1)
		if forced {
			evicted = []E{old}
		}
	}
	t.m.put(key, e)
	return e, evicted, true
}

// victim retires an entry and returns its slot, or −1. It prefers one that
// remembers nothing, which costs nothing to forget; then the first that was not
// touched since the hand last came by; then any.
func (r *Ring[E]) victim() (slot int, forced bool) {
	if i := r.find(lookahead, func(e E) bool { return e.Retire(false) }); i >= 0 {
		return i, false
	}
	start := r.hand
	if i := r.pass(func(e E) bool { return !e.Touched() && e.Retire(true) }); i >= 0 {
		return i, true
	}
	r.hand = start
	return r.pass(func(e E) bool { return e.Retire(true) }), true
}

// find returns the first of the next n slots whose entry satisfies ok, or −1.
// The hand stays: looking ahead is no visit.
func (r *Ring[E]) find(n int, ok func(E) bool) int {
	for k := range min(n, r.slots.n) {
		i := (r.hand + k) % r.slots.n
		if ok(r.slots.at(i)) {
			return i
		}
	}
	return -1
}

// pass moves the hand over at most reach slots, to behind the first whose entry
// satisfies ok, and returns that slot, or −1.
func (r *Ring[E]) pass(ok func(E) bool) int {
	for range min(reach, r.slots.n) {
		i := r.hand % r.slots.n
		r.hand = i + 1
		if ok(r.slots.at(i)) {
			return i
		}
	}
	return -1
}

// Sweep moves the hand over n slots and retires the entries that remember
// nothing and were not touched since its last visit. It returns how many. New
// keys go first: the lock is held for one short batch at a time.
func (r *Ring[E]) Sweep(n int) (removed int) {
	for n > 0 {
		r.giveWay()
		visited, gone := r.sweep(min(n, sweepBatch))
		removed += gone
		if visited == 0 {
			break
		}
		n -= visited
	}
	return removed
}

// giveWay lets the callers through who wait for the lock. A mutex alone favours
// the goroutine that is running, here the sweep.
func (r *Ring[E]) giveWay() {
	for range 16 {
		if r.waiting.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
}

// Each calls f for the entries of all tables, in no order, and for those that were
// removed since the hand last came by. One that comes meanwhile may not be seen, and one
// that moves to another slot may be seen twice. No lock is held while f runs.
func (r *Ring[E]) Each(f func(E)) {
	var batch [sweepBatch]E
	for end := math.MaxInt; end > 0; {
		var n int
		end, n = r.copyBefore(end, &batch)
		for _, e := range batch[:n] {
			f(e)
		}
	}
}

// copyBefore copies the entries before a slot, and returns the first slot that it
// copied. Each goes backwards because the last entry moves into the slot of one that
// leaves: forwards it would be missed.
func (r *Ring[E]) copyBefore(end int, batch *[sweepBatch]E) (from, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end = min(end, r.slots.n)
	from = max(end-len(batch), 0)
	for i := from; i < end; i++ {
		batch[i-from] = r.slots.at(i)
	}
	return from, end - from
}

// sweep visits n slots in one hold of the lock. The last entry moves into the
// slot of one that leaves, and is visited next.
func (r *Ring[E]) sweep(n int) (visited, removed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ; visited < n && r.slots.n > 0; visited++ {
		r.hand %= r.slots.n
		e := r.slots.at(r.hand)
		if e.Touched() || !e.Retire(false) {
			r.hand++
			continue
		}
		e.Unlink()
		r.slots.remove(r.hand)
		removed++
	}
	return visited, removed
}
