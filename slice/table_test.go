package slice

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func fakeTable(max int) (*Table[*fake], *Ring[*fake]) {
	r := NewRing[*fake](max)
	return NewTable(r), r
}

// put stores a new entry.
func put(t *testing.T, tb *Table[*fake], key string) (e *fake, evicted []*fake) {
	t.Helper()
	e, evicted, stored := tb.LoadOrMake(key, func() *fake { return newFake(tb, key) })
	if !stored {
		t.Fatalf("%q was not stored", key)
	}
	return e, evicted
}

func newFake(tb *Table[*fake], key string) *fake {
	return &fake{key: key, t: tb, holds: true}
}

func TestATableFindsWhatItStores(t *testing.T) {
	tb, r := fakeTable(10)
	a, _ := put(t, tb, "a")
	if again, _ := put(t, tb, "a"); again != a {
		t.Error("a second entry for one key")
	}
	if got, ok := tb.Load("a"); !ok || got != a {
		t.Error("not found")
	}
	if _, ok := tb.Load("b"); ok || tb.Len() != 1 || r.Len() != 1 {
		t.Error("more than was stored")
	}
	tb.Remove(newFake(tb, "a")) // another entry of that key
	tb.Remove(newFake(tb, "b"))
	if _, ok := tb.Load("a"); !ok {
		t.Error("removed by an entry that was not stored")
	}
	tb.Remove(a)
	if _, ok := tb.Load("a"); ok || tb.Len() != 0 {
		t.Error("still there")
	}
}

func TestRangeSeesEveryEntryAndStops(t *testing.T) {
	tb, _ := fakeTable(2000)
	for i := range 1000 {
		put(t, tb, fmt.Sprint(i))
	}
	seen := map[string]bool{}
	tb.Range(func(f *fake) bool { seen[f.key] = true; return true })
	stopped := 0
	tb.Range(func(*fake) bool { stopped++; return stopped < 7 })
	if len(seen) != 1000 || stopped != 7 {
		t.Errorf("saw %d, stopped after %d", len(seen), stopped)
	}
}

func TestRacingMakersGetOneEntry(t *testing.T) {
	for i := range 200 {
		tb, r := fakeTable(4)
		key := fmt.Sprint(i)
		got := make([]*fake, 8)
		var wg sync.WaitGroup
		for g := range got {
			wg.Go(func() {
				got[g], _, _ = tb.LoadOrMake(key, func() *fake { return newFake(tb, key) })
			})
		}
		wg.Wait()
		for _, e := range got {
			if e != got[0] {
				t.Fatal("two entries for one key")
			}
		}
		if tb.Len() != 1 || r.Len() != 1 {
			t.Fatalf("%d entries, %d slots", tb.Len(), r.Len())
		}
	}
}

// Whatever happens at once, the tables never hold more than the ring allows,
// and each entry is where its key says.
func TestTheBoundHoldsUnderConcurrency(t *testing.T) {
	const bound = 100
	r := NewRing[*fake](bound)
	tables := []*Table[*fake]{NewTable(r), NewTable(r)}
	var wg sync.WaitGroup
	var stop atomic.Bool
	for g := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				tb, key := tables[i%2], fmt.Sprint((i*(g+3))%400)
				e, _, _ := tb.LoadOrMake(key, func() *fake { return newFake(tb, key) })
				if e.key != key || e.t != tb {
					panic("another key's entry")
				}
				e.set(func(f *fake) { f.holds, f.flying = i%3 == 0, i%7 == 0 })
				e.touched.Store(i%2 == 0)
				if i%11 == 0 && e.Retire(false) {
					e.Unlink()
				}
			}
		})
	}
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		for !stop.Load() {
			r.Sweep(50)
			if n := tables[0].Len() + tables[1].Len(); n > bound+8 { // the two lengths are not read at once
				panic(fmt.Sprint(n, " entries"))
			}
		}
	})
	wg.Wait()
	stop.Store(true)
	sweeper.Wait()
	if n := tables[0].Len() + tables[1].Len(); n > r.Len() || r.Len() > bound {
		t.Errorf("%d entries, %d slots of %d", n, r.Len(), bound)
	}
}

// A map that doubles holds up the makers of new keys for as long as it copies,
// so no shard may become large: keys spread evenly, also when they differ little.
func TestKeysSpreadOverTheShards(t *testing.T) {
	const n = 1 << 16
	m := &keyMap[*int]{}
	for i := range n {
		m.put(fmt.Sprint("key-", i), new(int))
	}
	for i := range m.shards {
		if size := m.shards[i].Load().Size(); size < n/shards/2 || size > n/shards*2 {
			t.Errorf("shard %d has %d keys of %d", i, size, n)
		}
	}
	if m.len() != n {
		t.Errorf("%d keys, want %d", m.len(), n)
	}
}

func TestALookUpAllocatesNothing(t *testing.T) {
	tb, _ := fakeTable(10)
	e, _ := put(t, tb, "a")
	var dead Watermark
	e.cell.renew(1, 1<<30)
	if n := testing.AllocsPerRun(1000, func() {
		e, _ := tb.Load("a")
		e.cell.Take(1, &dead)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
