package zipf

import (
	"encoding/binary"
	"hash/fnv"
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

// Each rank is drawn as often as the definition says, for s below, at, near and
// above 1: the counts pass a chi-squared test at 1 in a million, and with fixed
// seeds always or never.
func TestRanksFollowTheLaw(t *testing.T) {
	const draws = 200_000
	for _, n := range []int{1, 2, 3, 20, 50, 1000} {
		for _, s := range []float64{0, 0.3, 0.5, 0.8, 0.99, 1, 1 + 1e-9, 1.2, 1.5, 3} {
			rng, z := rand.New(rand.NewPCG(1, uint64(n))), New(n, s)
			counts := make([]float64, n+1)
			for range draws {
				counts[z.Draw(rng)]++
			}
			chi, cells := chiSquared(counts, weights(n, s), draws)
			if limit := chiLimit(cells - 1); chi > limit {
				t.Errorf("n %d, s %v: chi² %.1f of %d cells, at most %.1f", n, s, chi, cells, limit)
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

// chiLimit is the chi-squared value that one run in a million exceeds: the cube
// root of chi²/k is nearly normal (Wilson and Hilferty).
func chiLimit(freedom int) float64 {
	if freedom == 0 {
		return 1e-9
	}
	k := float64(freedom)
	return k * math.Pow(1-2/(9*k)+4.75*math.Sqrt(2/(9*k)), 3)
}

// A sampler of another exponent is told from the right one.
func TestTheLawIsTested(t *testing.T) {
	const n, draws = 50, 200_000
	rng, z := rand.New(rand.NewPCG(1, 2)), New(n, 1.02)
	counts := make([]float64, n+1)
	for range draws {
		counts[z.Draw(rng)]++
	}
	chi, cells := chiSquared(counts, weights(n, 0.99), draws)
	if limit := chiLimit(cells - 1); chi <= limit {
		t.Errorf("chi² %.1f, at most %.1f: s 1.02 passes for 0.99", chi, limit)
	}
}

// The head of a million keys is as popular as it should be.
func TestTheHeadOfAMillion(t *testing.T) {
	const draws, n = 500_000, 1_000_000
	for _, s := range []float64{0.8, 0.99, 1.2} {
		p, rng, z := weights(n, s), rand.New(rand.NewPCG(2, 2)), New(n, s)
		counts := map[int]float64{}
		for range draws {
			k := z.Draw(rng)
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
		if share := counts[1] / draws; math.Abs(share-p[1]) > 0.003 {
			t.Errorf("s %v: the hottest key got %.4f of the draws, want %.4f", s, share, p[1])
		}
	}
}

// Seeds name runs in the documentation: they must stay the runs they were.
func TestTheSameSeedIsTheSameStream(t *testing.T) {
	for _, c := range []struct {
		n    int
		s    float64
		want uint64 // FNV-1a of 10,000 ranks
	}{
		{20, 0, 0xcd84641fed559c1b},
		{1000, 0.5, 0x9c0c27e9ccc3b61f},
		{1_000_000, 0.99, 0xd7da0a6d2ce379b8},
		{20, 1, 0x3e4ca554e81fab7},
		{1000, 1.2, 0xd9aed884de8c3a15},
	} {
		rng, z, sum := rand.New(rand.NewPCG(7, 8)), New(c.n, c.s), fnv.New64a()
		for range 10_000 {
			sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(z.Draw(rng))))
		}
		if sum.Sum64() != c.want {
			t.Errorf("n %d, s %v: the stream is %#x, want %#x", c.n, c.s, sum.Sum64(), c.want)
		}
	}
}

func TestIs(t *testing.T) {
	z := New(20, 1)
	if !z.Is(20, 1) || z.Is(21, 1) || z.Is(20, 0.99) {
		t.Error("a sampler is of its n and s alone")
	}
}
