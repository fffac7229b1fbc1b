package precheck

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// stepwise is the naive floor that is visited at each change of the fleet.
type stepwise struct {
	level float64
	at    int64
	m     int
	off   int64 // earns nothing before
}

func (s *stepwise) visit(now int64, whole Size) {
	size := share(whole, s.m)
	if begin := max(s.at, s.off); now > begin {
		s.level += size.Rate * float64(now-begin)
	}
	s.level, s.at = min(s.level, size.Cap), now
}

func (s *stepwise) set(now int64, m int, whole Size) {
	s.visit(now, whole)
	s.m = m
	s.visit(now, whole)
}

// A floor that comes back after changes of the fleet has what a floor has that
// was visited at each of them; and never more, also when there were more
// changes than the history keeps.
func TestAnIdleFloorIsAsOneThatWasVisited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := Size{Cap: float64(rapid.IntRange(1, 100).Draw(t, "cap")), Rate: perTick(rapid.Float64Range(0, 5).Draw(t, "rate"))}
		var h History
		before := rapid.SliceOfN(rapid.IntRange(1, 9), 1, 20).Draw(t, "before")
		now := int64(0)
		for _, m := range before {
			now += tick
			h.Set(now, m)
		}
		model := stepwise{level: whole.Cap, at: now, m: h.M()}
		model.visit(now, whole)
		var f Floor
		f.Start(model.level, now)
		if off := rapid.Int64Range(0, 20).Draw(t, "off"); off > 0 {
			f.Suspend(now + off*tick)
			model.off = now + off*tick
		}
		changes := rapid.SliceOfN(rapid.IntRange(1, 9), 0, 40).Draw(t, "changes")
		for _, m := range changes {
			now += rapid.Int64Range(0, 3).Draw(t, "ticks") * tick
			h.Set(now, m)
			model.set(now, m, whole)
		}
		now += rapid.Int64Range(0, 3).Draw(t, "last") * tick
		model.visit(now, whole)
		got := h.earned(f.level, f.at, max(f.at, f.resumes()), now, whole)
		if got > model.level+1e-9 {
			t.Fatalf("the idle floor has %g, one that was visited %g", got, model.level)
		}
		if len(changes) < maxSegments && !near(got, model.level) {
			t.Fatalf("the idle floor has %g of %g, though its whole history is known", got, model.level)
		}
		f.advance(now, whole, &h)
		if !near(got, f.level) {
			t.Fatalf("the floor has %g, the history gave it %g", f.level, got)
		}
	})
}

// What the history has lost clips to the smallest share of that time.
func TestLostHistoryClips(t *testing.T) {
	whole := Size{Cap: 60, Rate: 0}
	run := func(first ...int) float64 {
		var h History
		h.Set(0, 2)
		for i, m := range first {
			h.Set(int64(i+1), m)
		}
		for i := range 2 * maxSegments {
			h.Set(int64(100+i), 2+i%2)
		}
		return h.Earned(30, 0, 1000, whole)
	}
	for _, c := range []struct {
		first []int
		want  float64
	}{
		{nil, 20}, {[]int{2, 6, 2}, 10}, {[]int{6, 30, 5}, 2}, {[]int{100}, 0},
	} {
		if got := run(c.first...); got != c.want {
			t.Errorf("fleet %v: level %g, want %g", c.first, got, c.want)
		}
	}
}

func TestAShareIsWholeTokens(t *testing.T) {
	for _, c := range []struct {
		cap  float64
		m    int
		want float64
	}{
		{100, 20, 5}, {99, 20, 4}, {19, 20, 0}, {0.57 * 100, 1, 57}, {0.07 * 100, 7, 1},
	} {
		var h History
		h.Set(0, c.m)
		if got := h.Share(Size{Cap: c.cap}).Cap; got != c.want {
			t.Errorf("1/%d of %g is %g, want %g", c.m, c.cap, got, c.want)
		}
	}
}

// The heartbeat writes while floors read.
func TestHistoryIsReadWhileItChanges(t *testing.T) {
	var h History
	h.Set(0, 1)
	whole := Size{Cap: 10, Rate: 1}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for now := range int64(2000) {
				if got := h.Earned(0, 0, now, whole); got < 0 || got > 10 || h.M() < 1 {
					panic(fmt.Sprint("level ", got))
				}
			}
		})
	}
	for now := range int64(2000) {
		h.Set(now, int(now%7)+1)
	}
	wg.Wait()
}

func TestLargest(t *testing.T) {
	var h History
	h.Set(0, 3)
	h.Set(10, 8)
	h.Set(20, 2)
	for since, want := range map[int64]int{-5: 8, 0: 8, 19: 8, 20: 2, 30: 2} {
		if got := h.Largest(since); got != want {
			t.Errorf("the largest fleet since %d had %d nodes, want %d", since, got, want)
		}
	}
	for i := range int64(maxSegments) {
		h.Set(30+i, int(2+i%2))
	}
	if got := h.Largest(5); got != 8 {
		t.Errorf("a fleet that is no longer kept in detail: %d, want 8", got)
	}
}
