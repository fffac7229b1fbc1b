// Package zipf draws ranks of Zipf's law: how popular the keys are in the
// loads that lab, examples and tests make.
package zipf

import (
	"math"
	"math/rand/v2"
)

// Sampler draws ranks 1 to n, rank k with a probability proportional to k^-s, for
// every s ≥ 0 (the standard library's needs s > 1). It is the sampler by
// rejection-inversion of W. Hörmann and G. Derflinger, "Rejection-inversion to
// generate variates from monotone discrete distributions", ACM Transactions on
// Modeling and Computer Simulation 6 (1996): exact, and constant in time and
// memory, whatever n.
//
// The hat over the bar of rank k is the curve x^-s from k−½ to k+½, which holds
// at least the bar's area since the curve is convex. A point under the hat is
// drawn by inverting its area, and rejected if it is not under a bar.
//
// It is never written to: any number of goroutines may draw, each with its own rng.
type Sampler struct {
	n, s     float64
	from, to float64 // the area under the hat, at the left of rank 1 and at the right of rank n
	surely   float64 // a rank this near to its point needs no second look
}

// New is a sampler of n ≥ 1 ranks with exponent s ≥ 0.
func New(n int, s float64) *Sampler {
	z := &Sampler{n: float64(n), s: s}
	z.from = z.area(1.5) - 1 // rank 1 has its bar and nothing beside it
	z.to = z.area(z.n + 0.5)
	z.surely = 2 - z.point(z.area(2.5)-z.weight(2))
	return z
}

// Is reports whether New(n, s) would be the same sampler.
func (z *Sampler) Is(n int, s float64) bool { return z.n == float64(n) && z.s == s }

// Draw is a rank from 1 to n.
func (z *Sampler) Draw(rng *rand.Rand) int {
	if z.s == 0 {
		return 1 + rng.IntN(int(z.n))
	}
	for {
		u := z.to + rng.Float64()*(z.from-z.to)
		x := z.point(u)
		k := min(max(math.Round(x), 1), z.n)
		if k-x <= z.surely || u >= z.area(k+0.5)-z.weight(k) {
			return int(k)
		}
	}
}

// weight is the unnormalised probability of rank x.
func (z *Sampler) weight(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// area is the integral of weight from 1 to x: (x^(1−s) − 1)/(1−s), or ln x
// for s = 1; written so that nothing cancels near s = 1.
func (z *Sampler) area(x float64) float64 {
	l := math.Log(x)
	return l * part(math.Expm1, (1-z.s)*l)
}

// point is the inverse of area.
func (z *Sampler) point(a float64) float64 {
	t := max(a*(1-z.s), -1) // rounding may carry it below
	return math.Exp(a * part(math.Log1p, t))
}

// part is f(x)/x, and its limit at 0, which is 1 for Expm1 and Log1p.
func part(f func(float64) float64, x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1
	}
	return f(x) / x
}
