package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Each rank is drawn as often as the definition says, for s below, at, near
// and above 1.
func TestZipfFollowsItsDistribution(t *testing.T) {
	const draws = 200_000
	for _, n := range []int{1, 2, 50} {
		for _, s := range []float64{0, 0.3, 0.99, 1, 1 + 1e-9, 1.5, 3} {
			rng := rand.New(rand.NewPCG(1, 2))
			z := newZipf(n, s)
			seen := make([]float64, n+1)
			for range draws {
				seen[z.draw(rng)]++
			}
			if x2, limit := chiSquare(seen[1:], s, draws), chiLimit(n-1); x2 > limit {
				t.Errorf("n %d, s %v: chi-square %.1f, at most %.1f", n, s, x2, limit)
			}
		}
	}
}

func chiSquare(seen []float64, s, draws float64) (x2 float64) {
	var sum float64
	for i := range seen {
		sum += math.Pow(float64(i+1), -s)
	}
	for i, got := range seen {
		want := draws * math.Pow(float64(i+1), -s) / sum
		x2 += (got - want) * (got - want) / want
	}
	return x2
}

// chiLimit is the chi-square value that one run in about 30,000 exceeds
// (Wilson-Hilferty, 4 standard deviations).
func chiLimit(freedom int) float64 {
	if freedom == 0 {
		return 1e-9
	}
	k := float64(freedom)
	return k * math.Pow(1-2/(9*k)+4*math.Sqrt(2/(9*k)), 3)
}

func TestZipfOverManyKeys(t *testing.T) {
	const n, draws = 1_000_000, 100_000
	rng := rand.New(rand.NewPCG(3, 4))
	z := newZipf(n, 0.99)
	first := 0
	for range draws {
		k := z.draw(rng)
		if k < 1 || k > n {
			t.Fatalf("drew rank %d of %d", k, n)
		}
		if k == 1 {
			first++
		}
	}
	var sum float64
	for k := 1; k <= n; k++ {
		sum += math.Pow(float64(k), -0.99)
	}
	if share := float64(first) / draws; math.Abs(share-1/sum) > 0.003 {
		t.Errorf("the hottest key got %.4f of the requests, want %.4f", share, 1/sum)
	}
}
