package syncer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/batch"
	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// all returns how many values a histogram counted, and their sum.
func all(h *batch.Histogram) (n uint64, sum int64) {
	counts, sum := h.Read()
	for _, c := range counts {
		n += c
	}
	return n, sum
}

// Each call counts once, with what it carried and the time that it took.
func TestCallsAreCounted(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(10, time.Second), exactly)
		w.store.slow(3 * time.Millisecond)
		everyKey(l, 900).Wait()
		if _, err := l.Read(context.Background(), "k1", bucket(10, time.Second)); err != nil {
			t.Error(err)
		}
		calls := uint64(len(w.store.calls()))
		equal(t, "calls", w.Calls().Calls.Load(), calls)
		n, sum := all(w.Calls().BatchSize)
		equal(t, "calls by size", n, calls)
		equal(t, "settles", sum, 901)
		counts, sum := w.Calls().CallTime.Read()
		equal(t, "time in all", time.Duration(sum), time.Duration(calls)*3*time.Millisecond)
		equal(t, "calls above 2.5 and up to 5 ms", counts[5], calls)
	})
}

// A call without an answer counts when it is given up, and not again when the client
// returns from it after all.
func TestACallThatIsGivenUpCountsUntilThen(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(1000, time.Second)
		l := w.add(LimiterConfig{Name: "l", Plan: NewPlan(rule, exactly), Policy: key.FailClosed})
		w.store.slow(5 * time.Second)
		go allow(l, "k", 1)
		go func() { _, _ = l.Read(context.Background(), "other", rule) }()
		time.Sleep(900 * time.Millisecond)
		equal(t, "calls after 0.9 s", w.Calls().Calls.Load(), 0)
		time.Sleep(200 * time.Millisecond)
		n, sum := all(w.Calls().CallTime)
		equal(t, "calls after 1.1 s", n, 2)
		equal(t, "they took", time.Duration(sum), 2*time.Second)
		w.store.onCall(nil)
		time.Sleep(10 * time.Second)
		equal(t, "calls when all have returned", w.Calls().Calls.Load(), uint64(len(w.store.calls())))
	})
}

// The store answers a node at least once a second, unless it is away.
func TestSilence(t *testing.T) {
	outage(t, 1, func(t *testing.T, w *world) {
		w.store.fail(slice.NotRun)
		time.Sleep(3 * time.Second)
		equal(t, "since New, if it was never there", w.Silence(), 3*time.Second)
		w.heal()
		w.limiter(bucket(10, time.Second), strict)
		time.Sleep(3 * time.Second)
		for range 100 {
			if time.Sleep(97 * time.Millisecond); w.Silence() > 1300*time.Millisecond {
				t.Errorf("silent for %v, and all is well", w.Silence())
			}
		}
		w.down()
		before := w.Silence()
		time.Sleep(time.Minute)
		equal(t, "after a minute more", w.Silence()-before, time.Minute)
		w.heal()
		if w.Silence() > time.Second {
			t.Errorf("silent for %v, and it is back", w.Silence())
		}
	})
}

// LimitFor is user code and may take its time, which is not the store's: it neither opens
// the breaker nor shows in the times of calls.
func TestUserCodeIsNotTheStoresDelay(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		plan := NewPlan(bucket(1000, time.Hour), exactly) // a used key is not forgotten
		l := w.add(LimiterConfig{Name: "l", Plan: plan, PlanFor: func(string) *Plan {
			time.Sleep(60 * time.Millisecond)
			return plan
		}})
		for i := range 300 {
			go allow(l, fmt.Sprint("k", i%30), 1)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		if n := w.Calls().Calls.Load(); n < 30 {
			t.Errorf("%d calls, too few to show anything", n)
		}
		_, sum := w.Calls().CallTime.Read()
		equal(t, "time of all calls", time.Duration(sum), 0)
		equal(t, "changes of the breaker", len(w.changes()), 0)
	})
}
