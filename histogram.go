package hybrid

import (
	"math"

	"github.com/hybridlimit/hybrid/internal/batch"
)

// Histogram is how values are spread: how many were in each range. Counts only grow.
// A call that reads it meanwhile may find a value in Counts that is not in Sum yet.
type Histogram struct {
	Bounds []float64 // upper ends of the ranges, ascending, inclusive; always the same ones
	Counts []uint64  // of each range, one more than bounds: the last is of what is above all. Not cumulative
	Sum    float64   // of all values
}

// Count returns how many values there were.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns a value that the part q of all values, from 0 to 1, did not exceed:
// Quantile(0.99) is the 99th percentile. Within a range it is interpolated, as if values
// were spread evenly over it; above all bounds it is the last of them. Without values
// it is 0.
func (h Histogram) Quantile(q float64) float64 {
	count := h.Count()
	if count == 0 {
		return 0
	}
	rank := max(min(q, 1), 0) * float64(count)
	if math.IsNaN(rank) { // so is q
		rank = 0
	}
	below, low := 0.0, 0.0
	for i, bound := range h.Bounds {
		n := float64(h.Counts[i])
		if n > 0 && below+n >= rank {
			return low + (bound-low)*(rank-below)/n
		}
		below, low = below+n, bound
	}
	return low
}

// histogramOf reads a histogram whose unit is so much.
func histogramOf(h *batch.Histogram, unit float64) Histogram {
	counts, sum := h.Read()
	bounds := make([]float64, 0, len(h.Bounds()))
	for _, b := range h.Bounds() {
		bounds = append(bounds, float64(b)/unit)
	}
	return Histogram{Bounds: bounds, Counts: counts, Sum: float64(sum) / unit}
}
