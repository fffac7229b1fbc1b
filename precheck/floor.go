package precheck

import "math"

// Floor is what one node admits for one key without asking and, until the key
// has another reason to talk to the store, without reporting: a local bucket of
// the node's share of φ·B tokens, refilled with its share of φ·r.
//
// The floors of all nodes never add up to more than φ of the limit, also while
// the fleet changes. That rests on three rules: the floor is a level and is
// clipped at every fleet size that it has lived through, it earns only its
// share of each moment, and nobody starts with more than a never-used floor
// would have ([Fresh]), also not after its registration lapsed ([Floor.NotBefore]).
//
// Sizes are passed as whole, φ·(B, r) of the fleet; the history divides them.
// For a fixed window pass half of both, since a window may see a full floor and
// its refill. The caller holds the lock. 24 bytes, for there is one per key.
type Floor struct {
	level float64 // tokens at the moment at
	at    int64
	spent uint32 // tokens taken since Owed was last called, at most mostFloor
	off   uint32 // no serving and no earning before this moment, in units of offUnit
}

const (
	mostFloor = math.MaxUint32 // tokens: the largest floor, so that spent never needs more bits
	offUnit   = 1 << 26        // ns, 67 ms: 32 bits of them are nine years
)

// Start gives the floor its first level, from [Fresh.Level]. Without it a floor
// would have earned since the moment 0.
func (f *Floor) Start(level float64, now int64) { *f = Floor{level: level, at: now} }

// advance brings the level to now.
func (f *Floor) advance(now int64, whole Size, h *History) {
	now = max(now, f.at)
	f.level = h.earned(f.level, f.at, max(f.at, f.resumes()), now, bounded(whole))
	f.at = now
}

// bounded keeps a floor within the bits of spent.
func bounded(whole Size) Size { return Size{Cap: min(whole.Cap, mostFloor), Rate: whole.Rate} }

// resumes returns the moment at which a suspension ends.
func (f *Floor) resumes() int64 { return int64(f.off) * offUnit }

// Take takes n ≥ 1 tokens, all or none.
func (f *Floor) Take(now, n int64, whole Size, h *History) bool {
	f.advance(now, whole, h)
	if now < f.resumes() || float64(n) > f.level {
		return false
	}
	f.level -= float64(n)
	f.spent = uint32(min(int64(f.spent)+n, mostFloor))
	return true
}

// Level returns the tokens that a Take could get.
func (f *Floor) Level(now int64, whole Size, h *History) float64 {
	f.advance(now, whole, h)
	if now < f.resumes() {
		return 0
	}
	return f.level
}

// Owed returns what the account has not been told of the floor's use: what was
// taken since the last call, or what the floor lacks if that is less, for the
// rest has been earned again. It forgets what was taken.
func (f *Floor) Owed(now int64, whole Size, h *History) float64 {
	owed := f.Served(now, whole, h)
	f.spent = 0
	return owed
}

// Served is Owed that forgets nothing: what the floor has served of late.
func (f *Floor) Served(now int64, whole Size, h *History) float64 {
	f.advance(now, whole, h)
	lack := h.Share(bounded(whole)).Cap - f.level
	return min(float64(f.spent), max(lack, 0))
}

// Off returns for how many nanoseconds after a moment the floor is suspended.
func (f *Floor) Off(now int64) int64 { return max(f.resumes()-now, 0) }

// Suspend turns the floor off until a moment, rounded up to the next 67 ms: it
// serves nothing and earns nothing. A longer suspension is not cut short.
func (f *Floor) Suspend(until int64) {
	units := (max(until, 0) + offUnit - 1) / offUnit
	f.off = max(f.off, uint32(min(units, math.MaxUint32)))
}

// Full reports whether the floor is as good as a never-used one, so that it can
// be forgotten freely. A suspended floor remembers the suspension.
func (f *Floor) Full(now int64, whole Size, h *History) bool {
	f.advance(now, whole, h)
	return now >= f.resumes() && f.level >= h.Share(bounded(whole)).Cap
}

// NotBefore says that the node's floors are earned from the moment from: a floor
// from before it starts again, empty, then. What it owes, it still owes. Call it
// before each other use: a floor that was brought past from does not show any
// more that it is older.
func (f *Floor) NotBefore(from int64) {
	if f.at < from {
		f.level, f.at = 0, from
	}
}

// Put gives back n tokens that were taken and not yet reported, if so many were.
func (f *Floor) Put(n int64) bool {
	if int64(f.spent) < n {
		return false
	}
	f.spent -= uint32(n)
	f.level += float64(n) // clipped at the next advance
	return true
}

// Lower takes tokens out of the level that were used elsewhere, as far as there are any.
func (f *Floor) Lower(tokens float64) { f.level = max(f.level-tokens, 0) }
