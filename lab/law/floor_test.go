package law

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The formula for what a floor misses, against a floor that is drawn.
func TestMissed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ load, tokens float64 }{
		{0.3, 1}, {2, 1}, {0.5, 2}, {0.7, 5}, {0.9, 5}, {1, 5}, {1.1, 5}, {2, 5}, {5, 5}, {0.9, 50}, {1.2, 50},
	} {
		got, want := missed(c.load, c.tokens), drawn(rng, c.load, c.tokens)
		if math.Abs(got-want) > 0.01+0.15*want {
			t.Errorf("load %g on %g tokens: %.4f are missed, the formula says %.4f", c.load, c.tokens, want, got)
		}
	}
}

// drawn is the part of Poisson arrivals that find a bucket empty which earns a token
// per unit of time.
func drawn(rng *rand.Rand, load, tokens float64) float64 {
	const n = 200_000
	level, missed := tokens, 0
	for range n {
		level = min(level+rng.ExpFloat64()/load, tokens)
		if level < 1 {
			missed++
			continue
		}
		level--
	}
	return float64(missed) / n
}

// The groups of keys are all keys, and their rates add up to the service's.
func TestEachKey(t *testing.T) {
	for _, s := range []Service{{Keys: 1, Rate: 5}, {Keys: 1000, Skew: 0.99, Rate: 100}, {Keys: 10_000_000, Skew: 1, Rate: 1e6}, {Keys: 300, Rate: 9}} {
		keys, rate, hottest := 0.0, 0.0, 0.0
		s.each(func(r, k float64) {
			keys, rate, hottest = keys+k, rate+k*r, max(hottest, r)
		})
		if keys != float64(s.Keys) || math.Abs(rate/s.Rate-1) > 1e-9 {
			t.Errorf("%+v: %g keys with %g requests per second", s, keys, rate)
		}
		sum := 0.0
		for k := 1; k <= s.Keys; k++ {
			sum += math.Pow(float64(k), -s.Skew)
		}
		if want := s.Rate / sum; math.Abs(hottest/want-1) > 0.001 {
			t.Errorf("%+v: the first key has %g requests per second, want %g", s, hottest, want)
		}
	}
}
