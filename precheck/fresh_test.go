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
	want(0, 0, true) // announced before it is old enough
	want(tick, 0, true)
	want(4*tick, 3, true)
	want(100*tick, 10, true)
	h.Set(100*tick, 1)
	want(101*tick, 12, true) // the share grew, the level does not jump
	f.Spoil(101 * tick)
	want(101*tick, 0, true)
	f.Spoil(50 * tick) // a late caller takes nothing back
	want(102*tick, 2, true)
	f.Start(110 * tick) // the registration lapsed
	f.Spoil(103 * tick)
	want(104*tick, 0, true)
	want(112*tick, 4, true)
}

// A new registration is never undone by a Spoil that runs at the same time.
func TestStartBeatsSpoil(t *testing.T) {
	whole, h := Size{Cap: 100, Rate: 1}, new(History)
	h.Set(0, 1)
	for range 200 {
		var f Fresh
		f.Start(0)
		var wg sync.WaitGroup
		for now := range int64(4) {
			wg.Go(func() { f.Spoil(now) })
		}
		wg.Go(func() { f.Start(10) })
		wg.Wait()
		if level, _ := f.Level(12, whole, h); level != 2 {
			t.Fatalf("level %g, want what is earned since the new start", level)
		}
	}
}
