package hybrid

import (
	"math"
	"testing"
)

func TestQuantilesOfAHistogram(t *testing.T) {
	h := Histogram{Bounds: []float64{1, 2, 4}, Counts: []uint64{10, 0, 80, 10}, Sum: 300}
	if h.Count() != 100 {
		t.Errorf("%d values", h.Count())
	}
	for _, c := range []struct{ q, want float64 }{
		{-1, 0}, {0, 0}, {0.05, 0.5}, {0.1, 1}, {0.3, 2.5}, {0.5, 3}, {0.9, 4},
		{0.95, 4}, {1, 4}, {7, 4}, // above all bounds there is no telling
		{math.NaN(), 0},
	} {
		if got := h.Quantile(c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Quantile(%v) = %v, want %v", c.q, got, c.want)
		}
	}
	for _, empty := range []Histogram{{}, {Bounds: []float64{1, 2}, Counts: make([]uint64, 3)}} {
		if got := empty.Quantile(0.5); got != 0 || empty.Count() != 0 {
			t.Errorf("of nothing: %v", got)
		}
	}
	if got := (Histogram{Bounds: []float64{1, 2}, Counts: []uint64{0, 0, 5}}).Quantile(0.01); got != 2 {
		t.Errorf("all above the bounds: %v, want the last bound", got)
	}
}
