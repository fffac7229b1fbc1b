package syncer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// everyKey sends one request for each of n keys at the same moment.
func everyKey(l *Limiter, n int) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { allow(l, fmt.Sprintf("k%d", i), 1) })
	}
	return &wg
}

func TestCallsAreFewAndBounded(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		var now, most atomic.Int32
		w.store.onCall(func([]*slice.Settle) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(3 * time.Millisecond)
			now.Add(-1)
		})
		everyKey(w.limiter(bucket(10, time.Second), exactly), 900).Wait()
		sum := 0
		for _, n := range w.store.calls() {
			if sum += n; n > 64 {
				t.Errorf("a call with %d accounts", n)
			}
		}
		equal(t, "settles", sum, 900)
		equal(t, "calls at once", most.Load(), int32(8))
	})
}

// What becomes ready while all calls are under way goes with the next.
func TestBatchesFormByThemselves(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(10, time.Second), exactly)
		gate := make(chan struct{})
		w.store.onCall(func([]*slice.Settle) { <-gate })
		for i := range 8 {
			go allow(l, fmt.Sprintf("first%d", i), 1)
			synctest.Wait()
		}
		wg := everyKey(l, 100)
		synctest.Wait()
		equal(t, "calls under way", len(w.store.calls()), 8)
		close(gate)
		wg.Wait()
		got := w.store.calls()[8:]
		slices.Sort(got)
		if !slices.Equal(got, []int{36, 64}) {
			t.Errorf("then calls of %v, want 64 and 36", got)
		}
	})
}

// The fake fails the test when it sees two settles of one account at once.
func TestOneSettleOfAnAccountAtATime(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(time.Millisecond)
		for _, dial := range []Dial{exactly, strict} {
			l := w.add(LimiterConfig{Name: fmt.Sprint(dial.Slices), Plan: NewPlan(bucket(5000, time.Second), dial)})
			var wg sync.WaitGroup
			var allowed atomic.Int64
			for i := range 200 {
				wg.Go(func() {
					for range 10 {
						if allow(l, "k", 1).allowed {
							allowed.Add(1)
						}
						time.Sleep(time.Duration(i) * 100 * time.Microsecond)
					}
				})
			}
			wg.Wait()
			equal(t, "admitted", allowed.Load(), 2000)
		}
	})
}

// hold gives a key a slice by steady traffic, and uses some of it, so that its
// requests have paid for a few settles.
func hold(t *testing.T, l *Limiter, key string) *Account {
	t.Helper()
	for range 10_000 {
		allow(l, key, 1)
		if a, ok := l.Load(key); ok && held(a) > 8 && !busy(a) {
			for range 4 {
				allow(l, key, 1)
			}
			return a
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("no slice")
	return nil
}

func held(a *Account) int64 { return a.Cell.Alive(&a.limiter().s.Dead) }

func busy(a *Account) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.active.Load() != nil && a.active.Load().state.Busy()
}

// A settle that is not back after a second counts as lost, and its late reply
// is void: what the slice holds stays usable, is never reported, and its lease
// is not renewed.
func TestALateReplyIsVoid(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		a := hold(t, l, "k")
		w.store.slow(1500 * time.Millisecond)
		tokens := held(a)
		go w.Flush(context.Background()) // renews what it holds
		synctest.Wait()
		time.Sleep(900 * time.Millisecond)
		equal(t, "unknown after 0.9 s", l.Counts.Unknown.Load(), 0)
		time.Sleep(200 * time.Millisecond)
		equal(t, "unknown after 1.1 s", l.Counts.Unknown.Load(), 1)
		w.store.onCall(nil)
		ran := l.Counts.Operations.Load()
		time.Sleep(time.Second)
		equal(t, "operations known to have run", l.Counts.Operations.Load(), ran)
		equal(t, "the slice", held(a), tokens)
		if _, ok := a.Cell.Take(tokens, &w.Dead); !ok {
			t.Error("a marked slice serves until its lease ends")
		}
		from := len(w.store.settled())
		w.must("when it is used up, a new slice is asked for", allow(l, "k", 1), true, byStore)
		for _, st := range w.store.settled()[from:] {
			if u := st.Usage; u.Tag != (slice.Tag{}) || u.Spent+u.Returned+u.Held != 0 {
				t.Errorf("a marked lease was spoken of: %+v", u)
			}
		}
		time.Sleep(2 * time.Minute)
		hold(t, l, "k") // after the lease's end the key is as before
	})
}

// A lost reply to a settle that only asked leaves nothing in doubt.
func TestALostNeedLeavesNoMark(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(1000, time.Second), strict)
		w.store.fail(slice.Unknown)
		w.must("a request", allow(l, "k", 1), true, byPolicy)
		equal(t, "marked", peek(l, "k").InDoubt, false)
		equal(t, "unknown", l.Counts.Unknown.Load(), 1)
		w.store.fail(slice.Ran)
	})
}

// A store that hangs holds eight calls, and nothing else of the node.
func TestAHungStoreHoldsAFewCalls(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(10, time.Second), exactly)
		gate := make(chan struct{})
		w.store.onCall(func([]*slice.Settle) { <-gate })
		for i := range 40 {
			go allow(l, fmt.Sprint(i), 1)
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		equal(t, "calls", len(w.store.calls()), 8)
		close(gate)
		w.store.onCall(nil)
		time.Sleep(3 * time.Second)
		w.must("afterwards", allow(l, "0", 1), true, byStore)
	})
}
