package plot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// Scale says how values become distances.
type Scale int

// The scales. Log shows ratios, of values above 0 only; Asinh does so for values
// well above 1 and still has a place for 0.
const (
	Linear Scale = iota
	Log
	Asinh
)

// Normalize is the place of x between lo and hi, which lie at 0 and 1.
func (s Scale) Normalize(lo, hi, x float64) float64 {
	f := s.stretch()
	return (f(x) - f(lo)) / (f(hi) - f(lo))
}

func (s Scale) stretch() func(float64) float64 {
	switch s {
	case Log:
		return func(v float64) float64 { return math.Log(max(v, math.SmallestNonzeroFloat64)) }
	case Asinh:
		return math.Asinh
	}
	return func(v float64) float64 { return v }
}

// ticks are the marks of a scale from lo to hi.
func (s Scale) ticks(lo, hi float64) []float64 {
	switch s {
	case Log:
		return decades(lo, hi)
	case Asinh:
		return append([]float64{0}, decades(1, hi)...)
	}
	var out []float64
	step := niceStep(hi - lo)
	for i := math.Ceil(lo / step); i*step <= hi*(1+1e-9); i++ {
		out = append(out, i*step)
	}
	return out
}

func decades(lo, hi float64) (out []float64) {
	for e := math.Ceil(math.Log10(lo) - 1e-9); e <= math.Log10(hi)+1e-9; e++ {
		out = append(out, math.Pow(10, e))
	}
	return out
}

// niceStep divides a span into about five steps of 1, 2 or 5.
func niceStep(span float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, m := range []float64{1, 2, 5} {
		if span/(m*power) <= 6 {
			return m * power
		}
	}
	return 10 * power
}

// marks are the axis's ticks.
func (a Axis) marks() []plot.Tick {
	if len(a.Ticks) > 0 {
		out := make([]plot.Tick, len(a.Ticks))
		for i, t := range a.Ticks {
			out[i] = plot.Tick(t)
		}
		return out
	}
	var out []plot.Tick
	for _, v := range a.Scale.ticks(a.Min, a.Max) {
		out = append(out, plot.Tick{Value: v, Label: a.format(v)})
	}
	return out
}

func (a Axis) format(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// Percent writes 12.5 as "12.5 %".
func Percent(v float64) string {
	return strconv.FormatFloat(v, 'g', 6, 64) + " %"
}
