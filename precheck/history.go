package precheck

import (
	"math"
	"sync/atomic"
)

// maxSegments bounds the walk over the history at one access of a floor.
const maxSegments = 16

// History is the size M of a limiter's fleet over time, as one node saw it. It
// gives a floor its share of the past as well as of the present: a key that was
// idle while nodes came and went is clipped and filled as if it had been
// visited at each change.
//
// The word points to an immutable value. Writer: one, the heartbeat, which
// stores a changed copy. Readers: every access of a floor. A reader that still
// sees the old value acts as if it had come just before the change.
//
// The zero History has seen no fleet: call Set before use.
type History struct {
	past atomic.Pointer[past]
}

type past struct {
	lost     int       // the largest M before the segments, at least 1
	segments []segment // oldest first, at most maxSegments; the last one goes on
}

// segment says that the fleet had m nodes from a moment on.
type segment struct {
	from int64
	m    int
}

// Set says that the fleet has m ≥ 1 nodes from now on.
func (h *History) Set(now int64, m int) {
	old := h.past.Load()
	if old == nil {
		old = &past{lost: 1}
	} else if last := old.segments[len(old.segments)-1]; last.m == m {
		return
	} else {
		now = max(now, last.from)
	}
	h.past.Store(old.with(segment{from: now, m: m}))
}

// with returns a copy that ends with s. When there are too many segments the
// oldest leaves, and only its M is kept.
func (p *past) with(s segment) *past {
	next, keep := &past{lost: p.lost}, p.segments
	if len(keep) == maxSegments {
		next.lost = max(p.lost, keep[0].m)
		keep = keep[1:]
	}
	next.segments = append(append(make([]segment, 0, len(keep)+1), keep...), s)
	return next
}

// M returns the fleet size last set.
func (h *History) M() int {
	p := h.past.Load()
	return p.segments[len(p.segments)-1].m
}

// Largest returns the largest M that was in force at a moment or after it.
func (h *History) Largest(since int64) int {
	p := h.past.Load()
	most := p.segments[len(p.segments)-1].m
	for i, s := range p.segments[:len(p.segments)-1] {
		if p.segments[i+1].from > since {
			most = max(most, s.m)
		}
	}
	if p.segments[0].from > since {
		most = max(most, p.lost)
	}
	return most
}

// Share returns this node's present share of whole: the floor that a key may
// have now.
func (h *History) Share(whole Size) Size { return share(whole, h.M()) }

// share is 1/m of whole, with room for whole tokens only. The rounding forgives
// what a product such as 0.57·100 loses in binary.
func share(whole Size, m int) Size {
	s := whole.Over(float64(m))
	s.Cap = math.Floor(s.Cap * (1 + 1e-12))
	return s
}

// Earned returns the level that a bucket with the given level at from has
// reached at to. Its size is whole/M(t) at each moment. The time before the
// oldest segment that is kept earns nothing, and clips the level to the smallest
// share of that time.
func (h *History) Earned(level float64, from, to int64, whole Size) float64 {
	return h.earned(level, from, from, to, whole)
}

// earned is Earned for a bucket that earns nothing before the moment earn; its
// level is clipped all along.
func (h *History) earned(level float64, from, earn, to int64, whole Size) float64 {
	p := h.past.Load()
	if from < p.segments[0].from {
		level = min(level, share(whole, p.lost).Cap)
	}
	for i, s := range p.segments {
		end := int64(math.MaxInt64)
		if i+1 < len(p.segments) {
			end = p.segments[i+1].from
		}
		if s.from < from && end <= from || s.from > to {
			continue
		}
		size := share(whole, s.m)
		if begin := max(earn, s.from); min(end, to) > begin {
			level += size.Rate * float64(min(end, to)-begin)
		}
		level = min(level, size.Cap)
	}
	return max(level, 0)
}
