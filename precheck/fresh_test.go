package precheck

import (
	"sync"
	"testing"
)

func TestAFreshFloorStartsEmptyAndIsEarned(t *testing.T) {
	whole, h, f := Size{Cap: 20, Rate: perTick(2)}, new(History), new(Fresh)
	h.Set(0, 2)
	want := func(now int64, level float64, ok bool) {
		t.Helper()
		if got, have := f.Level(now, whole, h); got != level || have != ok {
			t.Errorf("at tick %d: %g %t, want %g %t", now/tick, got, have, level, ok)
		}
	}
	want(tick, 0, false) // not registered
	f.Spoil(tick)
	want(tick, 0, false) // which a spoil does not change
	f.Start(tick)
	want(tick, 0, true)
	want(4*tick, 3, true)
	want(100*tick, 10, true)
	h.Set(100*tick, 1)
	want(101*tick, 12, true) // the share grew, the level does not jump
	f.Spoil(101 * tick)
	want(101*tick, 0, true)
	f.Spoil(50 * tick) // a late caller takes nothing back
	want(102*tick, 2, true)
	f.Stop()
	want(102*tick, 0, false)
}

// A Stop is never undone by a Spoil that runs at the same time.
func TestStopBeatsSpoil(t *testing.T) {
	for range 200 {
		var f Fresh
		f.Start(0)
		var wg sync.WaitGroup
		for now := range int64(4) {
			wg.Go(func() { f.Spoil(now) })
		}
		wg.Go(f.Stop)
		wg.Wait()
		if _, ok := f.Level(10, Size{}, new(History)); ok {
			t.Fatal("a floor after Stop")
		}
	}
}
