package slice

import (
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"
)

// shards is how many xsync maps hold the keys. One map copies all its entries when
// it doubles, and every new key waits for it: over 100 ms at a million keys. A
// shard of such a map copies a few thousand. More shards would cost a table of few
// keys more cache lines than it has keys.
//
// A map of 2,048 buckets doubles beyond 7,680 entries: with 144 shards a node of a
// million keys, or of 2^20, is just short of that, where a key takes the least of
// the buckets (19 bytes; with 128 shards, just past it, 33).
const shards = 144

// keyMap is a concurrent map from keys to entries: xsync maps, one per shard,
// made when they are first needed. The zero keyMap is empty.
type keyMap[E comparable] struct {
	// Each word is nil or the shard for good. Writers: put, by a
	// compare-and-swap, so that racing makers agree. Readers: everyone; who
	// still sees nil acts as if it had come before the first key.
	shards [shards]atomic.Pointer[xsync.MapOf[string, E]]
}

// shardOf spreads keys by a few bytes of their start, middle and end, which
// costs less than a hash of the whole. Keys that agree in all of them share a
// shard, and lose nothing but shorter waits when it doubles: within the shard
// xsync hashes the whole key, with a seed.
func shardOf(key string) uint32 {
	n := len(key)
	if n < 4 {
		h := uint32(n)
		for i := range n {
			h = h<<8 | uint32(key[i])
		}
		return shardAt(h * spread)
	}
	h := four(key[:4])
	h = h*spread ^ four(key[n/2-2:n/2+2])
	h = h*spread ^ four(key[n-4:])
	return shardAt(h * spread)
}

// shardAt maps 32 bits evenly to the shards, by the highest of them.
func shardAt(h uint32) uint32 { return uint32(uint64(h) * shards >> 32) }

const spread = 0x9E3779B1 // 2^32 divided by the golden ratio: neighbours land far apart

func four(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func (m *keyMap[E]) get(key string) (e E, ok bool) {
	s := m.shards[shardOf(key)].Load()
	if s == nil {
		return e, false
	}
	return s.Load(key)
}

func (m *keyMap[E]) put(key string, e E) {
	place := &m.shards[shardOf(key)]
	if place.Load() == nil {
		place.CompareAndSwap(nil, xsync.NewMapOf[string, E]())
	}
	place.Load().Store(key, e)
}

// drop removes the key if e is what is stored there.
func (m *keyMap[E]) drop(key string, e E) {
	if s := m.shards[shardOf(key)].Load(); s != nil {
		s.Compute(key, func(have E, ok bool) (E, bool) { return have, !ok || have == e })
	}
}

func (m *keyMap[E]) each(f func(E) bool) {
	more := true
	for i := range m.shards {
		s := m.shards[i].Load()
		if s == nil {
			continue
		}
		s.Range(func(_ string, e E) bool { more = f(e); return more })
		if !more {
			return
		}
	}
}

func (m *keyMap[E]) len() (n int) {
	for i := range m.shards {
		if s := m.shards[i].Load(); s != nil {
			n += s.Size()
		}
	}
	return n
}
