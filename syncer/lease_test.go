package syncer

import (
	"testing"
	"testing/synctest"
	"time"
)

// A slice that nobody uses goes back, if others may need it: not before it was
// idle for a horizon, and at the third look.
func TestAnIdleSliceGoesBack(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(1000, 200*time.Second) // a horizon of 15 s
		l := w.limiter(rule, strict)
		w.store.use("l/k", rule, 800) // half is free after a minute
		a := hold(t, l, "k")
		time.Sleep(14 * time.Second)
		if held(a) == 0 {
			t.Error("it went back before a horizon was over")
		}
		time.Sleep(41 * time.Second)
		equal(t, "tokens held", a.Cell.Tokens(), 0)
		if _, lent := w.store.state("l/k", rule); lent != 0 {
			t.Errorf("%d tokens are lent", lent)
		}
	})
}

// Where most of the limit is free, an operation that returned an idle slice would
// be for nobody: the slice lapses with its lease.
func TestAnIdleSliceLapsesWhereMuchIsFree(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(1000, 10*time.Second), strict)
		a := hold(t, l, "k")
		before := w.store.opsOf("l/k")
		time.Sleep(2*time.Minute + 10*time.Second)
		equal(t, "operations", w.store.opsOf("l/k")-before, 0)
		equal(t, "tokens held", a.Cell.Tokens(), 0)
		w.atRest(t)
	})
}

// A slice in use outlives its lease: it is renewed in time, and no request has
// to wait for that.
func TestASliceInUseIsRenewed(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(6_000_000, time.Hour), strict)
		hold(t, l, "k")
		flood(l, "k", 1, 10*time.Millisecond, 15*time.Second)
		before := w.store.opsOf("l/k")
		allowed, denied := flood(l, "k", 1, 5*time.Second, 10*time.Minute)
		if len(denied) != 0 || allowed[bySlice] < 118 {
			t.Errorf("allowed %v, denied %v: want all but a few from the slice", allowed, denied)
		}
		if ops := w.store.opsOf("l/k") - before; ops < 5 || ops > 40 {
			t.Errorf("%d operations in 10 epochs", ops)
		}
	})
}

// The slice of a window ends with it, a guard before the store's window does.
func TestASliceEndsWithItsWindow(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(fixed(6000, 10*time.Second), strict)
		time.Sleep(time.Until(time.Now().Truncate(10 * time.Second).Add(13 * time.Second)))
		end := time.Now().Truncate(10 * time.Second).Add(10 * time.Second)
		a := hold(t, l, "k")
		for time.Until(end) > 300*time.Millisecond {
			allow(l, "k", 1)
			time.Sleep(10 * time.Millisecond)
		}
		if held(a) == 0 {
			t.Fatal("no slice 300 ms before the end")
		}
		for held(a) > 0 {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if left := time.Until(end); left < 50*time.Millisecond || left > 200*time.Millisecond {
			t.Errorf("the slice ended %v before the window", left)
		}
		time.Sleep(time.Until(end) + time.Millisecond)
		w.must("in the new window", allow(l, "k", 6000), true, byStore)
	})
}

// A key that is asked for again and again gets a slice; a key that is not, or
// an account with too little left to share, gets none.
func TestWhoGetsASlice(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(1000, 10*time.Second), strict)
		for range 20 {
			allow(l, "rare", 1)
			time.Sleep(3 * time.Second)
		}
		equal(t, "tokens lent for a rare key", l.Counts.Granted.Load(), 0)
		for range 3 {
			allow(l, "often", 1)
			time.Sleep(time.Millisecond)
		}
		if l.Counts.Granted.Load() == 0 {
			t.Error("no slice for a key in use")
		}
	})
}
