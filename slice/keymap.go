package slice

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"
)

// shardBits makes 128 shards. One xsync map copies all its entries when it
// doubles, and every new key waits for it: over 100 ms at a million keys. A
// shard of such a map copies 8,192. More shards would cost a table of few keys
// more cache lines than it has keys.
const shardBits = 7

// keyMap is a concurrent map from keys to entries: xsync maps, one per shard,
// made when they are first needed. A key is hashed once: the upper bits choose
// the shard, the lower ones the bucket. Whoever makes one gives it a seed.
type keyMap[E comparable] struct {
	seed maphash.Seed

	// Each word is nil or the shard for good. Writers: put, by a
	// compare-and-swap, so that racing makers agree. Readers: everyone; who
	// still sees nil acts as if it had come before the first key.
	shards [1 << shardBits]atomic.Pointer[shard[E]]
}

type shard[E comparable] = xsync.MapOf[hashed, E]

// hashed is a key with its hash.
type hashed struct {
	hash uint64
	key  string
}

func newShard[E comparable]() *shard[E] {
	return xsync.NewMapOfWithHasher[hashed, E](func(k hashed, _ uint64) uint64 { return k.hash })
}

func (m *keyMap[E]) get(key string) (e E, ok bool) {
	h := maphash.String(m.seed, key)
	s := m.place(h).Load()
	if s == nil {
		return e, false
	}
	return s.Load(hashed{h, key})
}

// place returns the place of the shard for a hash.
func (m *keyMap[E]) place(hash uint64) *atomic.Pointer[shard[E]] {
	return &m.shards[hash>>(64-shardBits)]
}

func (m *keyMap[E]) put(key string, e E) {
	k := hashed{maphash.String(m.seed, key), key}
	place := m.place(k.hash)
	if place.Load() == nil {
		place.CompareAndSwap(nil, newShard[E]())
	}
	place.Load().Store(k, e)
}

// drop removes the key if e is what is stored there.
func (m *keyMap[E]) drop(key string, e E) {
	k := hashed{maphash.String(m.seed, key), key}
	if s := m.place(k.hash).Load(); s != nil {
		s.Compute(k, func(have E, ok bool) (E, bool) { return have, !ok || have == e })
	}
}

func (m *keyMap[E]) each(f func(E) bool) {
	more := true
	for i := range m.shards {
		s := m.shards[i].Load()
		if s == nil {
			continue
		}
		s.Range(func(_ hashed, e E) bool { more = f(e); return more })
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
