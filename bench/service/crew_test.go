package service

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// evenly is arrivals at equal distances.
func evenly(n int, gap time.Duration) []request {
	all := make([]request, n)
	for i := range all {
		all[i].due = int64(i+1) * int64(gap)
	}
	return all
}

// load makes the calls of a stream. A call to the limiter may take some time.
func load(requests []request, most int, limiter func(r *request)) *crew {
	var c *crew
	c = newCrew(requests, most, func(r *request) {
		r.began = c.now()
		limiter(r)
		r.took = c.now() - r.began
	})
	c.run(context.Background())
	return c
}

func seen(r *request) time.Duration { return time.Duration(r.began + r.took - r.due) }

// A call that blocks delays itself, and nobody behind it by more than the crew sleeps
// anyway.
func TestACallThatBlocksDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := evenly(2000, 250*time.Microsecond)
		slow := &all[700]
		c := load(all, 100, func(r *request) {
			if r == slow {
				time.Sleep(100 * time.Millisecond)
			}
		})
		for i := range all {
			r := &all[i]
			switch {
			case !r.made():
				t.Fatalf("request %d was not made", i)
			case r == slow:
				if seen(r) < 100*time.Millisecond {
					t.Errorf("the slow call took %v", seen(r))
				}
			case seen(r) > nap:
				t.Errorf("request %d, due at %v, had its answer %v later", i, time.Duration(r.due), seen(r))
			}
		}
		if c.full || c.size > 3 {
			t.Errorf("%d members, full %v: one call blocked at a time", c.size, c.full)
		}
	})
}

// A crew of one cannot look after the others while a call blocks. They are late, and
// say so: nothing is left out because the one before was slow.
func TestWhoWaitsForTheCrewIsCountedFromWhenItWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gap, blocked = time.Millisecond, 100 * time.Millisecond
		all := evenly(400, gap)
		c := load(all, 1, func(r *request) {
			if r == &all[100] {
				time.Sleep(blocked)
			}
		})
		for i := 1; i < 100; i++ {
			want := blocked - time.Duration(i)*gap
			if got := seen(&all[100+i]); got < want || got > want+nap {
				t.Errorf("%d behind the slow one: seen %v, want %v", i, got, want)
			}
			if took := all[100+i].took; took != 0 {
				t.Errorf("%d behind the slow one: its own call took %v", i, time.Duration(took))
			}
		}
		if last := seen(&all[399]); last > nap {
			t.Errorf("the last one still waits %v", last)
		}
		if !c.full {
			t.Error("the crew does not say that it was too small")
		}
	})
}

// Where every call blocks, as many are under way as the load demands, and rest later.
func TestTheCrewGrowsAsCallsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gap, each = time.Millisecond, 20 * time.Millisecond
		all := evenly(1000, gap)
		c := load(all, 100, func(*request) { time.Sleep(each) })
		for i := range all {
			if got := seen(&all[i]); got > each+nap {
				t.Fatalf("request %d: seen %v", i, got)
			}
		}
		if want := int(each / gap); c.busiest < want || c.busiest > want+1 || c.size > want+3 {
			t.Errorf("%d calls at once by %d members, want %d calls", c.busiest, c.size, want)
		}
	})
}

// A frail crew gives up when calls pile up, and makes no further call.
func TestAFrailCrewGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := evenly(1000, time.Millisecond)
		c := newCrew(all, 10, nil)
		c.frail = true
		var made atomic.Int32
		c.call = func(*request) { made.Add(1); time.Sleep(time.Second) }
		c.run(t.Context())
		if n := made.Load(); !c.full || n != 10 {
			t.Errorf("full %v after %d calls", c.full, n)
		}
	})
}

// When the context ends, no call begins and the run returns.
func TestACrewStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		all := evenly(1000, time.Millisecond)
		var made atomic.Int32
		newCrew(all, 10, func(*request) { made.Add(1) }).run(ctx)
		if n := made.Load(); n < 99 || n > 101 {
			t.Errorf("%d calls in 100 ms", n)
		}
	})
}

// The alarm goes off when it should, many times over. It is held against plain timers of
// the same length, which are no earlier.
func TestTheAlarm(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer a.stop()
	const d = 300 * time.Microsecond
	alarms, timers := newLatency(), newLatency()
	for range 100 {
		begin := time.Now()
		a.sleep(d)
		alarms.add(int64(time.Since(begin)))
		begin = time.Now()
		time.Sleep(d)
		timers.add(int64(time.Since(begin)))
	}
	t.Logf("%v: p50 %v, a plain timer %v", d, alarms.at(50), timers.at(50))
	if early := time.Duration(alarms.h.Min()); early < d*9/10 {
		t.Errorf("an alarm of %v went off after %v", d, early)
	}
	if alarms.at(50) > 2*timers.at(50)+d {
		t.Errorf("alarms take %v, plain timers %v", alarms.at(50), timers.at(50))
	}
}

// On the machine's own clock: with a call that spins and one that sleeps, each for
// 100 ms, those behind wait about as long as they do without them.
func TestTakingOverInRealTime(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("a call that spins needs a processor of its own")
	}
	const held = 100 * time.Millisecond
	worst := func(hold func()) time.Duration {
		all := evenly(2500, 100*time.Microsecond)
		load(all, 100, func(r *request) {
			if r == &all[1000] {
				hold()
			}
		})
		late := newLatency()
		for i := range all[1001:2000] {
			late.add(int64(seen(&all[1001+i])))
		}
		return late.at(90)
	}
	for range 5 { // another program may take the processors for as long
		plain := worst(func() {})
		slept := worst(func() { time.Sleep(held) })
		spun := worst(func() {
			for end := time.Now().Add(held); time.Now().Before(end); {
			}
		})
		t.Logf("90 of 100 behind it wait %v at most; when it sleeps %v, when it spins %v", plain, slept, spun)
		if slept < held/4+3*plain && spun < held/4+3*plain {
			return
		}
	}
	t.Error("a call that takes 100 ms holds up those behind it")
}

// Members take requests one by one, each once.
func TestEachRequestIsMadeOnce(t *testing.T) {
	all := evenly(20_000, time.Microsecond)
	counts := make([]atomic.Int32, len(all))
	load(all, 50, func(r *request) {
		i := (r.due / int64(time.Microsecond)) - 1
		counts[i].Add(1)
		if i%100 == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	})
	for i := range counts {
		if n := counts[i].Load(); n != 1 {
			t.Fatalf("request %d was made %d times", i, n)
		}
	}
}
