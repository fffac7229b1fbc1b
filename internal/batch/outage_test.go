package batch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// A call that is not back after a second is lost: its jobs end with an unknown outcome,
// another call takes its place, and its late reply is void.
func TestALateReplyIsVoid(t *testing.T) {
	story(t, 1, func(w *world) {
		w.slow(3 * time.Second)
		s := w.Shards()[0]
		var jobs []*job
		for range mostCalls {
			jobs = append(jobs, submit(s, 1)...)
			synctest.Wait()
		}
		next := submit(s, 1)
		sleep(callTimeout - time.Millisecond)
		equal(t, "calls that have ended", w.Counts.Calls.Load(), 0)
		w.set(func() { w.send = nil })
		sleep(2 * time.Millisecond)
		ended(t, jobs, slice.Unknown)
		ended(t, next, slice.Ran)
		sleep(3 * time.Second)
		ended(t, jobs, slice.Unknown)
		equal(t, "calls when all have returned", w.Counts.Calls.Load(), uint64(len(w.calls())))
	})
}

// While a shard is down nothing is sent into it: jobs end at once, as not run and not
// sent, and user code is not asked for them.
func TestWhileDownNothingIsSent(t *testing.T) {
	story(t, 2, func(w *world) {
		down, well := w.Shards()[0], w.Shards()[1]
		w.goDown(down)
		jobs := append(submit(down, 5), submitLater(down, 5)...)
		others := append(submit(well, 5), submitLater(well, 5)...)
		w.Tick()
		w.Wait()
		ended(t, jobs, slice.NotRun)
		ended(t, others, slice.Ran)
		for _, j := range jobs {
			if j.unsent != 1 || j.refreshed != 0 || j.done[0].Err != ErrDown {
				t.Errorf("unsent %d, refreshed %d, %v", j.unsent, j.refreshed, j.done[0].Err)
			}
		}
		equal(t, "failures", w.failures(), 10)
		w.comeBack(down)
	})
}

// A flush leaves a shard that is down alone; its jobs wait for the tick.
func TestAFlushLeavesAShardThatIsDownAlone(t *testing.T) {
	story(t, 1, func(w *world) {
		s := w.Shards()[0]
		w.goDown(s)
		jobs := submitLater(s, 1)
		w.Flush()
		w.Wait()
		equal(t, "jobs that have ended", jobs[0].ends(), 0)
		w.comeBack(s)
		w.Flush()
		w.Wait()
		ended(t, jobs, slice.Ran)
	})
}

// Calls that hang when an outage ends were lost in it. They end one timeout later, and
// not only when the call timeout is over.
func TestCallsOfAnOutageAreGivenUp(t *testing.T) {
	story(t, 1, func(w *world) {
		s := w.Shards()[0]
		w.slow(10 * callTimeout)
		jobs := submit(s, 1)
		synctest.Wait()
		w.goDown(s)
		w.set(func() { w.send = nil })
		w.comeBack(s)
		sleep(requestTimeout - time.Millisecond)
		equal(t, "jobs that have ended before", jobs[0].ends(), 0)
		sleep(2 * time.Millisecond)
		ended(t, jobs, slice.Unknown)
		next := submit(s, 1)
		w.Wait()
		ended(t, next, slice.Ran)
		sleep(10 * callTimeout)
		ended(t, jobs, slice.Unknown)
	})
}

// For a minute after an outage one background call goes per tick: a store that is just
// back is not overrun. Jobs that requests wait for are not held up.
func TestAStoreThatIsBackIsSpared(t *testing.T) {
	story(t, 1, func(w *world) {
		s := w.Shards()[0]
		w.goDown(s)
		w.comeBack(s)
		background := func(ticks int) (calls int) {
			before := len(w.calls())
			for range ticks {
				w.Tick()
				time.Sleep(tickEvery)
			}
			return len(w.calls()) - before
		}
		submitLater(s, 1000*mostBatch)
		equal(t, "calls in 10 ticks", background(10), 10)
		jobs := submit(s, 10*mostBatch)
		synctest.Wait()
		ended(t, jobs, slice.Ran)
		sleep(time.Duration(recoveryPeriod))
		equal(t, "calls in 10 ticks, a minute later", background(10), 10*mostBackground)
	})
}

// A shard's background calls after an outage carry its part of a full call.
func TestAShardThatIsBackGetsItsPart(t *testing.T) {
	story(t, 4, func(w *world) {
		s := w.Shards()[0]
		w.goDown(s)
		w.comeBack(s)
		submitLater(s, 100)
		w.Tick()
		w.Wait()
		if got := w.calls(); !slices.Equal(got, []int{mostBatch / 4}) {
			t.Errorf("calls of %v, want one of %d", got, mostBatch/4)
		}
	})
}

// Only calls from before the end of an outage are given up; a later one that is slow has
// its full time.
func TestCallsAfterAnOutageHaveTheirTime(t *testing.T) {
	story(t, 1, func(w *world) {
		s := w.Shards()[0]
		w.goDown(s)
		w.comeBack(s)
		sleep(requestTimeout / 2)
		w.slow(callTimeout / 2)
		jobs := submit(s, 1)
		sleep(callTimeout/2 - time.Millisecond)
		equal(t, "jobs that have ended before", jobs[0].ends(), 0)
		sleep(2 * time.Millisecond)
		ended(t, jobs, slice.Ran)
	})
}

// Shards that fail one after the other are one outage of the whole, and each shard's own
// change is reported as well: its heartbeats follow it.
func TestShardsAreOneOutage(t *testing.T) {
	story(t, 2, func(w *world) {
		a, b := w.Shards()[0], w.Shards()[1]
		state := func(what string, down, all, first, second bool) {
			t.Helper()
			equal(t, what+": down", w.Down(), down)
			equal(t, what+": all down", w.AllDown(), all)
			equal(t, what+": the first shard", w.shards[0], first)
			equal(t, what+": the second shard", w.shards[1], second)
		}
		w.goDown(a)
		state("one fails", true, false, true, false)
		w.goDown(b)
		state("the other fails", true, true, true, true)
		w.comeBack(a)
		state("one is back", true, false, false, true)
		w.comeBack(b)
		state("the other is back", false, false, false, false)
		if !slices.Equal(w.changes, []bool{true, false}) {
			t.Errorf("changes %v", w.changes)
		}
		equal(t, "outages", w.Counts.BreakerOpens.Load(), 1)
	})
}

// A store that refuses everything opens the breaker. One that refuses an account alone is
// well.
func TestRefusalsOfOneAccountAreNoOutage(t *testing.T) {
	for _, lone := range []bool{false, true} {
		story(t, 1, func(w *world) {
			w.set(func() {
				w.send = func(batch []*slice.Settle) {
					gone(batch)
					for _, st := range batch {
						st.Lone = lone
					}
				}
			})
			s := w.Shards()[0]
			for range 20 {
				submit(s, 1)
				time.Sleep(requestTimeout)
			}
			equal(t, "down", s.Down(), !lone)
			if lone {
				equal(t, "failures", w.failures(), 20)
			}
			if heard := s.SettledAt() > 0 && w.AnsweredAt() > 0; heard != lone {
				t.Errorf("answers of a store that refuses, lone %t: %t", lone, heard)
			}
			w.comeBack(s)
		})
	}
}

// The latency follows the calls, an eighth at a time.
func TestLatencyIsSmoothed(t *testing.T) {
	story(t, 1, func(w *world) {
		equal(t, "at first", time.Duration(w.Latency()), requestTimeout/10)
		w.slow(10 * time.Millisecond)
		submit(w.Shards()[0], 1)
		w.Wait()
		equal(t, "after one call of 10 ms", time.Duration(w.Latency()), 3*time.Millisecond)
		for range 50 {
			submit(w.Shards()[0], 1)
			w.Wait()
		}
		if got := time.Duration(w.Latency()); got < 9900*time.Microsecond || got > 10*time.Millisecond {
			t.Errorf("after 50 more: %v", got)
		}
	})
}
