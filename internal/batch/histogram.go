package batch

import (
	"slices"
	"sync/atomic"
)

// Histogram counts values by ranges that never change. Any goroutine may observe and
// read at any time; what is read is not one consistent snapshot.
type Histogram struct {
	bounds []int64 // upper ends of the ranges, ascending, inclusive; immutable
	counts []atomic.Uint64
	sum    atomic.Int64
}

func newHistogram(bounds []int64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// observe counts one value.
func (h *Histogram) observe(v int64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i].Add(1)
	h.sum.Add(v)
}

// Bounds returns the upper ends of the ranges. The caller must not change them.
func (h *Histogram) Bounds() []int64 { return h.bounds }

// Read returns how many values were in each range, the last of which is all above
// the bounds, and the sum of all values.
func (h *Histogram) Read() (counts []uint64, sum int64) {
	counts = make([]uint64, len(h.counts))
	for i := range h.counts {
		counts[i] = h.counts[i].Load()
	}
	return counts, h.sum.Load()
}
