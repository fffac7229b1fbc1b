package batch

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

func TestCallsAreFewAndBounded(t *testing.T) {
	story(t, 1, func(w *world) {
		var now, most atomic.Int32
		w.set(func() {
			w.send = func(batch []*slice.Settle) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(3 * time.Millisecond)
				now.Add(-1)
				ran(batch)
			}
		})
		jobs := submit(w.Shards()[0], 900)
		w.Wait()
		ended(t, jobs, slice.Ran)
		sum := 0
		for _, n := range w.calls() {
			if sum += n; n > mostBatch {
				t.Errorf("a call with %d settles", n)
			}
		}
		equal(t, "settles", sum, 900)
		equal(t, "calls at once", most.Load(), int32(mostCalls))
	})
}

// What becomes ready while all calls are under way goes with the next.
func TestBatchesFormByThemselves(t *testing.T) {
	story(t, 1, func(w *world) {
		gate := make(chan struct{})
		w.set(func() { w.send = func(batch []*slice.Settle) { <-gate; ran(batch) } })
		s := w.Shards()[0]
		for range mostCalls {
			submit(s, 1)
			synctest.Wait()
		}
		submit(s, 100)
		synctest.Wait()
		equal(t, "calls under way", len(w.calls()), mostCalls)
		close(gate)
		w.Wait()
		got := w.calls()[mostCalls:]
		slices.Sort(got)
		if !slices.Equal(got, []int{36, 64}) {
			t.Errorf("then calls of %v, want 64 and 36", got)
		}
	})
}

// Background jobs fill the room that a call has left, and cost no call of their own.
func TestBackgroundJobsTravelWithOthers(t *testing.T) {
	story(t, 1, func(w *world) {
		s := w.Shards()[0]
		later := submitLater(s, 100)
		synctest.Wait()
		equal(t, "calls for background jobs alone", len(w.calls()), 0)
		submit(s, 1)
		w.Wait()
		if got := w.calls(); got[0] != mostBatch {
			t.Errorf("calls of %v, want a full one first", got)
		}
		ended(t, later, slice.Ran) // within the quota the goroutine sends the rest as well
	})
}

// Alone, background jobs go with the tick or a flush, in a bounded number of calls.
func TestBackgroundCallsHaveAQuota(t *testing.T) {
	story(t, 1, func(w *world) {
		s := w.Shards()[0]
		jobs := submitLater(s, 40*mostBatch)
		w.Flush()
		w.Wait()
		equal(t, "calls until the first tick", len(w.calls()), mostBackground)
		w.Flush()
		w.Wait()
		equal(t, "calls after another flush", len(w.calls()), mostBackground)
		for range 2 {
			w.Tick()
			w.Wait()
		}
		equal(t, "calls after two ticks", len(w.calls()), 40)
		ended(t, jobs, slice.Ran)
	})
}

// A job that was queued in the background may be in a hurry later. It stands in line
// twice, and is sent once.
func TestAVoidPlaceIsSkipped(t *testing.T) {
	story(t, 1, func(w *world) {
		s, j := w.Shards()[0], &job{}
		s.SubmitLater(j)
		j.moved = true
		s.Submit(j)
		w.Wait()
		w.Tick()
		w.Wait()
		equal(t, "settles", j.prepared, 1)
		ended(t, []*job{j}, slice.Ran)
	})
}

// A job with nothing to tell ends without a settle; alone it makes no call.
func TestNothingToTellMakesNoCall(t *testing.T) {
	story(t, 1, func(w *world) {
		j := &job{quiet: true}
		w.Shards()[0].Submit(j)
		w.Wait()
		equal(t, "calls", len(w.calls()), 0)
		equal(t, "counted calls", w.Counts.Calls.Load(), 0)
		if len(j.done) != 1 || j.done[0] != nil || j.unsent != 0 {
			t.Errorf("ended with %v, %d unsent", j.done, j.unsent)
		}
	})
}

// A shard that hangs holds its calls, and no other shard's.
func TestAShardThatHangsHoldsItsCallsAlone(t *testing.T) {
	story(t, 2, func(w *world) {
		hung, well := w.Shards()[0], w.Shards()[1]
		gate := make(chan struct{})
		w.set(func() { w.send = func(batch []*slice.Settle) { <-gate; ran(batch) } })
		for range 40 {
			submit(hung, 1)
			synctest.Wait()
		}
		equal(t, "calls into the shard that hangs", len(w.calls()), mostCalls/2)
		w.set(func() { w.send = nil })
		jobs := submit(well, 10)
		synctest.Wait()
		ended(t, jobs, slice.Ran)
		close(gate)
	})
}

// Shares keep a node's load on the store the same in one shard as in many, but each
// shard has two calls: one may hang.
func TestShardsShareWhatANodeMayDo(t *testing.T) {
	for _, c := range []struct {
		shards int
		want   limits
	}{
		{1, limits{calls: 8, background: 16, recovering: 64}},
		{3, limits{calls: 2, background: 5, recovering: 21}},
		{100, limits{calls: 2, background: 1, recovering: 1}},
	} {
		equal(t, "limits", limitsOf(c.shards), c.want)
	}
}

// User code that is asked for a limit may take its time: the store is not to blame.
func TestUserCodeIsNotTheStoresDelay(t *testing.T) {
	story(t, 1, func(w *world) {
		for range 100 {
			w.Shards()[0].Submit(&job{user: 3 * requestTimeout})
			time.Sleep(10 * time.Millisecond)
		}
		w.Wait()
		equal(t, "down", w.Down(), false)
		if _, sum := w.Counts.CallTime.Read(); sum != 0 {
			t.Errorf("the calls took %v, want nothing", time.Duration(sum))
		}
	})
}

// Each call counts once, with its settles and its time.
func TestCallsAreCounted(t *testing.T) {
	story(t, 1, func(w *world) {
		w.slow(3 * time.Millisecond)
		s := w.Shards()[0]
		submit(s, 900)
		w.Wait()
		st := &slice.Settle{}
		if err := s.Ask(context.Background(), st); err != nil || st.Outcome != slice.Ran {
			t.Errorf("asked: %v, %v", err, st.Outcome)
		}
		calls := uint64(len(w.calls()))
		equal(t, "calls", w.Counts.Calls.Load(), calls)
		_, settles := w.Counts.BatchSize.Read()
		equal(t, "settles", settles, 901)
		counts, sum := w.Counts.CallTime.Read()
		equal(t, "time in all", time.Duration(sum), time.Duration(calls)*3*time.Millisecond)
		equal(t, "calls above 2.5 and up to 5 ms", counts[5], calls)
	})
}

// An Ask ends with its context; the call goes on, and counts when it is lost.
func TestAnAskEndsWithItsContext(t *testing.T) {
	story(t, 1, func(w *world) {
		w.slow(5 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		if err := w.Shards()[0].Ask(ctx, &slice.Settle{}); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		equal(t, "calls at once", w.Counts.Calls.Load(), 0)
		sleep(callTimeout)
		equal(t, "calls after the call timeout", w.Counts.Calls.Load(), 1)
		sleep(5 * time.Second)
		equal(t, "calls when it has returned", w.Counts.Calls.Load(), 1)
	})
}
