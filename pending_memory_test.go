//go:build pending

package hybrid

import (
	"runtime"
	"testing"
)

// heap is the live bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Keys that have been pushed out leave nothing behind: memory is bounded by
// MaxKeys alone, however fast fresh keys come.
func TestAttackLeavesNoMemory(t *testing.T) {
	keys, maxKeys := attackSize()
	before := heap()
	a := newAttack(t, watchedOnly(), maxKeys)
	a.run(keys)
	a.fresh, a.control, a.calls, a.bare = [attackers]stopwatch{}, [attackers]stopwatch{}, stopwatch{}, bareTable{}
	perKey := float64(heap()-before) / float64(maxKeys)
	t.Logf("%.0f bytes of heap for each key of MaxKeys", perKey)
	if perKey > 1000 {
		t.Errorf("%.0f bytes of heap for each key of MaxKeys, allowed 1000", perKey)
	}
	_ = a.node.Close()
	runtime.KeepAlive(a)
}
