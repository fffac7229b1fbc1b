package syncer

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is what is still to be told when a window, a limiter or a limit comes to its
// end.

// A charge whose settle is still under way when its window ends, and fails then, is not
// told again as one of the next window, also if that has been charged meanwhile.
func TestAChargeOfAWindowThatHasEnded(t *testing.T) {
	for _, outcome := range []slice.Outcome{slice.NotRun, slice.Unknown} {
		story(t, func(t *testing.T, w *world) {
			rule := fixed(1000, time.Minute)
			l := w.limiter(rule, exactly)
			allow(l, "k", 1) // now the node knows the store's windows
			end := time.Now().Truncate(time.Minute).Add(time.Minute)
			time.Sleep(time.Until(end) - 300*time.Millisecond)
			w.store.slow(400 * time.Millisecond)
			w.store.onSettle(func(*slice.Settle) (slice.Outcome, error) { return outcome, errGone })
			charge(l, "k", 300)
			time.Sleep(time.Until(end) + 10*time.Millisecond)
			if !busy(l.Account("k", "k")) {
				t.Fatal("no settle is under way")
			}
			charge(l, "k", 20)
			w.store.set(func() { w.store.call, w.store.fate = nil, nil })
			for range 3 { // requests pay for telling it again
				time.Sleep(2 * time.Second)
				allow(l, "k", 1)
			}
			time.Sleep(time.Second)
			if used, _ := w.store.state("l/k", rule); used < 20 || used > 2*20+3 { // told twice at worst
				t.Errorf("after a settle that was %v: %v used, want the 20 of this window and 3 requests", outcome, used)
			}
		})
	}
}

// A charge that comes too late for a limiter that is being closed is refused: nobody
// would tell it to the store, and the node would look at it for ever.
func TestAChargeThatComesWhileTheLimiterCloses(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.add(LimiterConfig{Name: "l", Plan: NewPlan(bucket(1000, time.Minute), strict), PlanFor: func(string) *Plan {
			time.Sleep(time.Second) // and it is closed meanwhile
			return nil
		}})
		taken := make(chan bool, 1)
		go func() { taken <- l.Account("k", "k").Charge(5) }()
		time.Sleep(100 * time.Millisecond)
		if err := l.Close(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
		equal(t, "the charge was taken", <-taken, false)
		time.Sleep(time.Hour)
		equal(t, "accounts that are looked at after an hour", w.timers.len(), 0)
	})
}

// A slice that was granted under another limit goes back. If no request has paid for
// that, it lapses with its lease, and the node is done with the key.
func TestASliceOfAnotherLimitThatNobodyPaysFor(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Hour), strict)
		allow(l, "k", 1)
		allow(l, "k", 1) // each pays for a settle, and the second brings a slice
		time.Sleep(200 * time.Millisecond)
		a, _ := l.Load("k")
		if held(a) == 0 {
			t.Fatal("no slice")
		}
		l.SetPlan(NewPlan(bucket(30_000, time.Hour), strict))
		time.Sleep(3 * time.Minute)
		if b := peek(l, "k"); b != nil {
			t.Errorf("still in touch: %+v", *b)
		}
		equal(t, "accounts that are looked at", w.timers.len(), 0)
		equal(t, "settles", w.store.opsOf("l/k"), 2)
	})
}
