package syncer

import (
	"hash/fnv"
	"sync/atomic"
)

// dice is a node's source of chance, which spreads over time what nodes would do
// at once. Its seed is the node's name: fleets of the same names in the same
// virtual time run alike. It is SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014), of which any goroutine may draw.
type dice struct {
	state atomic.Uint64
}

func (d *dice) seed(name string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	d.state.Store(h.Sum64())
}

// float returns a number in [0, 1).
func (d *dice) float() float64 {
	z := d.state.Add(0x9e3779b97f4a7c15)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// jitter spreads a span over ±20 %, so that nodes do not act in step.
func (d *dice) jitter(ns int64) int64 { return int64(float64(ns) * (0.8 + 0.4*d.float())) }
