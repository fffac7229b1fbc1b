package syncer

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// An outage under a flood of keys keeps nothing of those that MaxKeys pushed
// out, and none of them gets its share again by being forgotten.
func TestAnOutageForgetsWhatItEvicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t), func(c *Config) { c.MaxKeys = 50 })
		w.lossy = true
		l := w.limiter(bucket(10, time.Hour), strict)
		w.down()
		admitted := 0
		for range 20 {
			for i := range 100 {
				if allow(l, fmt.Sprint("key", i), 1).allowed && i == 7 {
					admitted++
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.timers.len(); n > 60 {
			t.Errorf("%d accounts in the timer queue of a node of 50 keys", n)
		}
		if admitted > 10 {
			t.Errorf("%d admitted of a key of 10 per hour", admitted)
		}
		w.store.fail(slice.Ran)
		time.Sleep(5 * time.Second)
		w.end()
	})
}

// A flood of keys leaves no more than MaxKeys of them, whatever they were about.
func TestAFloodLeavesNothingOfWhatItEvicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t), func(c *Config) { c.MaxKeys = 50 })
		l := w.limiter(bucket(5, time.Hour), strict)
		for i := range 2000 {
			allow(l, fmt.Sprint("key", i), 1)
			time.Sleep(100 * time.Microsecond)
		}
		if n := w.timers.len(); n > 60 {
			t.Errorf("%d accounts on the timer queue of a node of 50 keys", n)
		}
		w.end()
	})
}

// When thousands of keys have something to tell at once, a caller still waits
// for one round trip.
func TestCallersGoBeforeTheNodesOwnSettles(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, time.Minute), strict)
		const keys = 5000
		for i := range keys {
			charge(l, fmt.Sprint("charged", i), 1)
		}
		w.store.slow(5 * time.Millisecond)
		var all sync.WaitGroup
		for i := range 20 {
			time.Sleep(10 * time.Millisecond)
			all.Go(func() {
				start := time.Now()
				w.must("a caller", allow(l, fmt.Sprint("new", i), 1), true, byStore)
				// A call that is under way, and its own.
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Errorf("it waited %v", d)
				}
			})
		}
		all.Wait()
		time.Sleep(2 * time.Second)
		told := 0
		for _, st := range w.store.settled() {
			if st.Usage.Charged > 0 {
				told++
			}
		}
		equal(t, "charges told", told, keys)
	})
}

// A store that is just back hears the debts of an outage bit by bit: one call per
// tick and node, and callers as they come.
func TestAfterAnOutageOneCallPerTick(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 100*time.Hour), strict)
		w.down()
		const keys = 500
		for i := range keys {
			allow(l, fmt.Sprint("key", i), 1)
		}
		w.store.fail(slice.Ran)
		for w.Down() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second) // all debts are due
		before := len(w.store.calls())
		const ticks = 10
		time.Sleep(ticks * w.cfg.SyncInterval)
		if n := len(w.store.calls()) - before; n > ticks+1 {
			t.Errorf("%d calls in %d ticks", n, ticks)
		}
		time.Sleep(time.Second)
		told := 0
		for _, st := range w.store.settled() {
			if st.Usage.Fallback > 0 && st.Account != "probe/k" {
				told++
			}
		}
		equal(t, "debts told", told, keys)
	})
}

// A key whose own limit falls gives back what it held under the higher one.
func TestALoweredTierGivesItsSliceBack(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		high, low := NewPlan(bucket(60_000, time.Minute), strict), NewPlan(bucket(60, time.Minute), strict)
		plan := high
		var mu sync.Mutex
		l := w.add(LimiterConfig{Name: "tiers", Plan: high, PlanFor: func(string) *Plan {
			mu.Lock()
			defer mu.Unlock()
			return plan
		}})
		a := hold(t, l, "k")
		w.store.use("tiers/k", high.Rule, 59_000)
		mu.Lock()
		plan = low
		mu.Unlock()
		time.Sleep(200 * time.Millisecond)
		had := held(a)
		allowed, _ := flood(l, "k", 1, time.Millisecond, 3*time.Second)
		// By the low limit the account was full when it was last written, and one
		// per second comes back.
		if n := int64(allowed[bySlice] + allowed[byStore]); n > had+3 {
			t.Errorf("%d admitted in 3 s, of which %d were held when the limit fell to one per second", n, had)
		}
	})
}

// While a lease is of unknown standing its tokens are counted once, however
// many settles pass.
func TestAMarkedLeaseIsCountedOnce(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		a := hold(t, l, "k")
		w.store.fail(slice.Unknown)
		a.Refill()
		time.Sleep(200 * time.Millisecond)
		w.store.fail(slice.Ran)
		time.Sleep(3 * time.Second)
		l.s.Collect()
		before := l.Counts.SliceTokens.Load()
		allowed, _ := flood(l, "k", 1, 10*time.Millisecond, 3*time.Second)
		l.s.Collect()
		if got := l.Counts.SliceTokens.Load() - before; got != uint64(allowed[bySlice]) {
			t.Errorf("%d tokens counted, %d were taken", got, allowed[bySlice])
		}
		time.Sleep(2 * time.Minute) // a marked lease cannot be returned, only lapse
	})
}

// hang makes the store answer nothing until it is healed: calls end when the client's
// patience does, long after the node's.
func (f *fake) hang() {
	f.set(func() {
		f.call = func([]*slice.Settle) { time.Sleep(3 * time.Second) }
		f.fate = func(*slice.Settle) (slice.Outcome, error) { return slice.Unknown, ErrTimeout }
		f.beat = func() error { time.Sleep(3 * time.Second); return ErrTimeout }
	})
}

func (f *fake) heal() { f.set(func() { f.call, f.fate, f.beat = nil, nil, nil }) }

// What was queued when the store fell silent is not sent into the silence, and what
// hangs in it is given up when it is over: all keys are as they were at once.
func TestAnOutageLeavesNothingInTheAir(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.lossy = true
		w.store.shared = true // calls that were given up are still under way
		l := w.limiter(bucket(1000, time.Hour), exactly)
		allow(l, "k", 1)
		time.Sleep(900 * time.Millisecond) // between heartbeats
		w.store.hang()
		var all sync.WaitGroup
		const keys = 30 * 64
		for i := range keys {
			all.Go(func() { allow(l, fmt.Sprint(i), 1) })
		}
		all.Wait()
		for range 10 {
			allow(l, "k", 1)
			time.Sleep(10 * time.Millisecond)
		}
		equal(t, "down", w.Down(), true)
		sent := len(w.store.calls())
		time.Sleep(900 * time.Millisecond)
		equal(t, "calls into the silence", len(w.store.calls())-sent, 0)
		w.store.heal()
		healed := time.Now()
		for w.Down() {
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(healed); d > 2*time.Second { // a probe hangs, or a few
			t.Errorf("noticed after %v", d)
		}
		time.Sleep(w.cfg.StoreTimeout + time.Millisecond)
		for i := range keys {
			w.must("a key after the outage", allow(l, fmt.Sprint(i), 1), true, byStore)
		}
		time.Sleep(4 * time.Second) // the client returns from the last of its calls
	})
}

// A key that was asked for once is the first to go, whoever answered: a flood of such
// keys pushes out none that are asked for again.
func TestAFloodOfKeysSparesThoseInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t), func(c *Config) { c.MaxKeys = 500 })
		w.store.shared = true
		l := w.limiter(bucket(1000, 100*time.Second), floored)
		time.Sleep(time.Minute)
		lost, at := 0, map[string]*Account{}
		for round := range 200 {
			for i := range 50 {
				k := fmt.Sprint("hot", i)
				allow(l, k, 1)
				a, _ := l.Load(k)
				if at[k] != nil && at[k] != a {
					lost++
				}
				at[k] = a
			}
			for i := range 100 {
				allow(l, fmt.Sprint("once", round, ".", i), 200) // more than a floor holds
			}
			time.Sleep(50 * time.Millisecond)
		}
		equal(t, "keys in use pushed out", lost, 0)
		w.end()
	})
}
