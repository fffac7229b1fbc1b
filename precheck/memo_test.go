package precheck

import (
	"math"
	"sync"
	"testing"
	"time"
)

func TestAMemoDeniesItsCostsUntilItEnds(t *testing.T) {
	m := &Memo{Cost: 5, Until: 100, Retry: 130}
	for _, c := range []struct {
		cost, now int64
		want      bool
	}{
		{4, 50, false}, {5, 50, true}, {9, 99, true}, {5, 100, false}, {math.MaxInt64, 99, true},
	} {
		if got := m.Denies(c.cost, c.now); got != c.want {
			t.Errorf("cost %d at %d: %t", c.cost, c.now, got)
		}
	}
	requests, tokens := m.Drain()
	if requests != 3 || tokens != 5+9+mostCounted {
		t.Errorf("counted %d requests, %d tokens", requests, tokens)
	}
	if requests, tokens := m.Drain(); requests != 0 || tokens != 0 {
		t.Errorf("counted %d and %d twice", requests, tokens)
	}
}

func TestRetryAfterIsNeverZero(t *testing.T) {
	m := &Memo{Until: 100, Retry: 130}
	for now, want := range map[int64]time.Duration{0: 130, 129: 1, 130: 1, 500: 1} {
		if got := m.RetryAfter(now); got != want {
			t.Errorf("at %d: %d, want %d", now, got, want)
		}
	}
	never := &Memo{Until: 100, Retry: math.MaxInt64}
	if got := never.RetryAfter(50); got != math.MaxInt64 {
		t.Errorf("never: %d", got)
	}
}

func TestNoMemoDeniesNothing(t *testing.T) {
	var m *Memo
	if requests, tokens := m.Drain(); m.Denies(1, 0) || requests != 0 || tokens != 0 {
		t.Error("nil denied")
	}
	if new(Memo).Denies(1, 0) {
		t.Error("the zero memo denied")
	}
}

func TestDenialsAreCountedOnceUnderConcurrency(t *testing.T) {
	m := &Memo{Cost: 1, Until: 10}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Denies(2, 1)
			}
		})
	}
	var requests, tokens int64
	drain := func() {
		r, n := m.Drain()
		requests, tokens = requests+r, tokens+n
	}
	for range 100 {
		drain()
	}
	wg.Wait()
	drain()
	if requests != 8000 || tokens != 16000 {
		t.Errorf("counted %d requests, %d tokens", requests, tokens)
	}
}

func TestADenialAllocatesNothing(t *testing.T) {
	m := &Memo{Cost: 1, Until: math.MaxInt64}
	if n := testing.AllocsPerRun(1000, func() { m.Denies(1, 1) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkMemoDenies(b *testing.B) {
	m := &Memo{Cost: 1, Until: math.MaxInt64}
	b.ReportAllocs()
	for b.Loop() {
		m.Denies(1, 1)
	}
}
