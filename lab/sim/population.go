package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/hybridlimit/hybrid/internal/zipf"
)

// population is the keys that requests are for, numbered from 0 on, the most
// popular first.
//
// A sample of them stands for all where all would be too many: keys share nothing
// but calls, so what happens to one does not depend on the others. It is drawn
// from each octave of ranks (1, 2–3, 4–7, …), where keys are much alike: as many of
// it as make so many requests, and at least one.
type population struct {
	rng    *rand.Rand
	zipf   *zipf.Sampler
	strata []stratum
	ends   []float64 // of the strata's parts of the requests, cumulated
	skew   float64
	count  int     // of keys that requests are made for
	part   float64 // of all requests that are made
}

// stratum is an octave of which some keys stand for all.
type stratum struct {
	first  int       // number of its first key
	ranks  []float64 // of its keys, ascending
	weight float64   // how many keys each stands for
}

func (e Experiment) population() *population {
	p := &population{rng: e.random("keys"), skew: e.Skew, count: e.Keys, part: 1}
	if e.Sample == 0 {
		p.zipf = zipf.New(e.Keys, e.Skew)
		p.strata = []stratum{{weight: 1}}
		return p
	}
	p.sample(e)
	return p
}

// sample draws the strata.
func (p *population) sample(e Experiment) {
	masses, sum := octaves(e.Keys, e.Skew)
	offered := e.offered(e.Load, e.Rate)
	p.count = 0
	var kept float64
	for j, mass := range masses {
		first := 1 << j
		size := min(first, e.Keys-first+1)
		n := int(math.Round(e.Sample * float64(size) / (mass / sum * offered)))
		s := stratum{first: p.count}
		n = min(max(n, 1), size)
		for i := range n {
			s.ranks = append(s.ranks, float64(first)+math.Floor((float64(i)+p.rng.Float64())*float64(size)/float64(n)))
		}
		s.weight = float64(size) / float64(n)
		p.strata, p.count = append(p.strata, s), p.count+n
		for _, rank := range s.ranks {
			kept += math.Pow(rank, -p.skew)
		}
		p.ends = append(p.ends, kept)
	}
	p.part = kept / sum
}

// octaves sums up the unnormalised popularity of ranks 2^j to 2^(j+1)−1.
func octaves(n int, skew float64) (masses []float64, sum float64) {
	for first := 1; first <= n; first *= 2 {
		mass := 0.0
		for rank := first; rank < 2*first && rank <= n; rank++ {
			mass += math.Pow(float64(rank), -skew)
		}
		masses, sum = append(masses, mass), sum+mass
	}
	return masses, sum
}

// draw is the number of a key.
func (p *population) draw() int32 {
	switch {
	case p.ends != nil:
		return p.drawSampled()
	case p.count == 1:
		return 0
	}
	return int32(p.zipf.Draw(p.rng) - 1)
}

// drawSampled draws a stratum, then one of its keys by rejection: none of them is
// more popular than the first rank of its octave.
func (p *population) drawSampled() int32 {
	u := p.rng.Float64() * p.ends[len(p.ends)-1]
	j, _ := slices.BinarySearch(p.ends, u)
	s := &p.strata[min(j, len(p.strata)-1)]
	for {
		i := p.rng.IntN(len(s.ranks))
		if p.rng.Float64() < math.Pow(s.ranks[i]/s.ranks[0], -p.skew) {
			return int32(s.first + i)
		}
	}
}

// stratumOf is the stratum of a key.
func (p *population) stratumOf(key int32) int {
	if p.ends == nil {
		return 0
	}
	j, found := slices.BinarySearchFunc(p.strata, key, func(s stratum, key int32) int { return s.first - int(key) })
	if found {
		return j
	}
	return j - 1
}

// names are short, as those of most services.
func (p *population) names() []string {
	names := make([]string, p.count)
	for i := range names {
		names[i] = "k" + strconv.Itoa(i)
	}
	return names
}

// numberOf is the key that a name is of.
func numberOf(name string) int32 {
	n, _ := strconv.Atoi(name[1:])
	return int32(n)
}
