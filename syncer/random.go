package syncer

import (
	"hash/fnv"
	"sync/atomic"
)

// random is a node's source of chance, which spreads over time what nodes would do at
// once. Its seed is the node's name: fleets of the same names in the same
// virtual time run alike. It is SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014), of which any goroutine may draw.
type random struct {
	state atomic.Uint64
}

func (r *random) seed(name string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	r.state.Store(h.Sum64())
}

// float returns a number in [0, 1).
func (r *random) float() float64 {
	z := r.state.Add(0x9e3779b97f4a7c15)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
