package hybrid

import (
	"runtime"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
)

// What a key may take besides its own bytes.
const (
	mostBytesCold = 160
	mostBytesHeld = 700
)

// bytesPerKey is the heap that so many keys take, each, made by a function.
func bytesPerKey(keys int, fill func()) float64 {
	before := heap()
	fill()
	return float64(heap()-before) / float64(keys)
}

// A node remembers a million keys, and most of them are cold: what one takes
// besides its bytes is what a node takes. (Go's allocator rounds the key of these
// benchmarks, of 15 bytes, to 16.)
func TestMemoryPerKey(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	const keys, keyBytes = 1_000_000, 16
	names := benchKeys(keys)
	// Ticks so rare forget next to none meanwhile, however busy the machine is.
	_, l := onLedger(t, ledger.NewStore(), Options{MaxKeys: keys, SyncInterval: 10 * time.Second}, plenty, nil)
	cold := bytesPerKey(keys, func() {
		for _, key := range names {
			l.core.Account(key, key) // as a first request does, without the store
		}
	}) - keyBytes
	if n := l.node.Stats().Total.Keys; n < keys*9/10 {
		t.Fatalf("%d keys of %d are remembered", n, keys)
	}
	t.Logf("a cold key takes %.0f bytes besides its own", cold)
	if cold > mostBytesCold {
		t.Errorf("a cold key takes %.0f bytes besides its own, allowed %d", cold, mostBytesCold)
	}
	runtime.KeepAlive(names)
}

// A key with a slice takes more: its lease, its demand, its place in the agenda.
func TestMemoryPerKeyWithASlice(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	const keys, keyBytes = 1 << 16, 16
	names := benchKeys(keys)
	node := newNodeOn(t, &generousStore{})
	l := newLimiter(t, node, "bench", Strict)
	held := bytesPerKey(keys, func() {
		for _, key := range names {
			withSlice(t, l, key)
		}
	}) - keyBytes
	mustPath(t, l, names[0], PathSlice)
	t.Logf("a key with a slice takes %.0f bytes besides its own", held)
	if held > mostBytesHeld {
		t.Errorf("a key with a slice takes %.0f bytes besides its own, allowed %d", held, mostBytesHeld)
	}
	runtime.KeepAlive(names)
}
