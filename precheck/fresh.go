package precheck

import "sync/atomic"

// Fresh is the level that a never-used floor of this node would have: what a
// floor starts with whose key the node has not seen, or has forgotten. One per
// limiter. A node's floors start empty when its registration is one membership
// TTL old, because by then every other node knows of it and has made room.
//
// The zero Fresh has no floor.
//
// The word is the moment since which such a floor has been earning, plus 1;
// 0 means that this node was never registered. Writers: the heartbeat (Start)
// and whoever evicts (Spoil). Readers: whoever starts a floor.
// Order: Spoil comes before the evicted entry leaves the table, and Level is read
// after the new entry has entered it. Otherwise an entry made before its key's
// last one was evicted could start with a level from before the Spoil.
type Fresh struct {
	since atomic.Int64
}

// Start says that the registration is new and old enough at the moment from,
// which may lie ahead: floors are earned from then on.
func (f *Fresh) Start(from int64) { f.since.Store(from + 1) }

// Spoil says that a floor that was not full has been forgotten: nobody can say
// whose, so every floor that is started later earns from now.
func (f *Fresh) Spoil(now int64) {
	for {
		since := f.since.Load()
		if since == 0 || since > now || f.since.CompareAndSwap(since, now+1) {
			return
		}
	}
}

// Level returns the level of a never-used floor, and false if there is none.
func (f *Fresh) Level(now int64, whole Size, h *History) (level float64, ok bool) {
	since := f.since.Load()
	if since == 0 {
		return 0, false
	}
	return h.Earned(0, since-1, now, whole), true
}
