package batch

import (
	"slices"
	"testing"
)

func TestAHistogramCountsByItsBounds(t *testing.T) {
	h := newHistogram([]int64{1, 2, 4})
	for _, v := range []int64{-1, 0, 1, 2, 3, 4, 5, 1 << 40} {
		h.observe(v)
	}
	counts, sum := h.Read()
	if want := []uint64{3, 1, 2, 2}; !slices.Equal(counts, want) || sum != 14+1<<40 {
		t.Errorf("counted %v, in all %d; want %v", counts, sum, want)
	}
	for _, bounds := range [][]int64{callTimes, batchSizes} {
		if !slices.IsSorted(bounds) || len(slices.Compact(slices.Clone(bounds))) != len(bounds) {
			t.Errorf("bounds %v", bounds)
		}
	}
}
