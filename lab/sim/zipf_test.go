package sim

import (
	"math"
	"math/rand/v2"
	"testing"
)

// weights are the probabilities of ranks 1 to n, summed up without the sampler.
func weights(n int, s float64) []float64 {
	p, sum := make([]float64, n+1), 0.0
	for k := n; k >= 1; k-- { // the small ones first, for the sake of rounding
		p[k] = math.Pow(float64(k), -s)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// The counts of ranks pass a chi-squared test against the distribution, at 1 in a
// million: with fixed seeds it passes always or never.
func TestZipfDistribution(t *testing.T) {
	const draws = 200_000
	for _, n := range []int{1, 2, 3, 20, 1000} {
		for _, s := range []float64{0, 0.5, 0.8, 0.99, 1, 1.2, 3} {
			rng, z := rand.New(rand.NewPCG(1, uint64(n))), newZipf(n, s)
			counts := make([]float64, n+1)
			for range draws {
				counts[z.draw(rng)]++
			}
			chi, cells := chiSquared(counts, weights(n, s), draws)
			// Wilson and Hilferty: the cube root of chi²/k is nearly normal.
			if k := float64(cells - 1); k > 0 {
				z := (math.Cbrt(chi/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
				if z > 4.75 {
					t.Errorf("n %d, s %v: chi² %.1f of %d cells", n, s, chi, cells)
				}
			}
		}
	}
}

// chiSquared joins ranks that are too rare to be judged alone.
func chiSquared(counts, p []float64, draws float64) (chi float64, cells int) {
	var seen, want float64
	for k := 1; k < len(counts); k++ {
		seen, want = seen+counts[k], want+p[k]*draws
		if want < 10 && k < len(counts)-1 {
			continue
		}
		chi += (seen - want) * (seen - want) / want
		seen, want = 0, 0
		cells++
	}
	return chi, cells
}

// The head of a million keys is as popular as it should be.
func TestZipfOfAMillion(t *testing.T) {
	const draws, n = 500_000, 1_000_000
	for _, s := range []float64{0.8, 0.99, 1.2} {
		p, rng, z := weights(n, s), rand.New(rand.NewPCG(2, 2)), newZipf(n, s)
		counts := map[int]float64{}
		for range draws {
			k := z.draw(rng)
			if k < 1 || k > n {
				t.Fatalf("rank %d", k)
			}
			counts[k]++
		}
		for k := 1; k <= 20; k++ {
			want := p[k] * draws
			if diff := math.Abs(counts[k] - want); diff > 5*math.Sqrt(want) {
				t.Errorf("s %v: rank %d came %v times, want %.0f", s, k, counts[k], want)
			}
		}
	}
}
