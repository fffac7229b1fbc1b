package tests_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// Reset frees what this node has spent from its slice and not reported, too.
func TestResetFreesTheNodesOwnSlice(t *testing.T) {
	for _, c := range []struct {
		limit hybrid.Limit
		uses  int
	}{
		{hybrid.PerMinute(1000), 300},
		{hybrid.PerMinute(20), 8},
		{hybrid.Window(20, time.Minute), 15},
	} {
		t.Run(c.limit.String(), func(t *testing.T) {
			story(t, func(w *world) {
				n := w.node(hybrid.Options{})
				l := n.limiter("api", c.limit, hybrid.LimiterOptions{Accuracy: hybrid.Strict})
				for range c.uses {
					allow(t, l, "k", 1)
					time.Sleep(3 * time.Millisecond)
				}
				if err := l.Reset(ctx, "k"); err != nil {
					t.Fatal(err)
				}
				if b := w.books("api", c.limit, hybrid.Strict, "k"); b.Used > 0 || b.Lent > 0 {
					t.Errorf("%v used, %d lent after Reset", b.Used, b.Lent)
				}
				if got := admits(t, l, "k", 2000); got < int(c.limit.Burst()) {
					t.Errorf("%d of %d admitted after Reset", got, c.limit.Burst())
				}
			})
		})
	}
}

// A charge whose reply was lost does not come back after Reset.
func TestResetForgetsACharge(t *testing.T) {
	story(t, func(w *world) {
		limit := hybrid.PerHour(1000)
		n := w.node(hybrid.Options{})
		l := n.limiter("api", limit, hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		n.link.Inject(redistest.CutAfter)
		if err := l.Charge("k", 900); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := l.Reset(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		allow(t, l, "k", 1)
		time.Sleep(2 * time.Second)
		if b := w.books("api", limit, hybrid.Exact, "k"); b.Used > 1 {
			t.Errorf("%v used after Reset and one request", b.Used)
		}
	})
}

// Nor does what an evicted key owed.
func TestResetForgetsWhatAnEvictedKeyOwes(t *testing.T) {
	story(t, func(w *world) {
		limit := hybrid.PerHour(1000)
		n := w.node(hybrid.Options{MaxKeys: 1})
		l := n.limiter("api", limit, hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		if err := l.Charge("k", 900); err != nil {
			t.Fatal(err)
		}
		allow(t, l, "other", 2000) // evicts it
		if err := l.Reset(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if b := w.books("api", limit, hybrid.Exact, "k"); b.Used > 1 {
			t.Errorf("%v used after Reset", b.Used)
		}
	})
}

// After LimitFor has changed a plan, Reset asks for it.
func TestResetAsksForThePlan(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		limit := hybrid.PerDay(10)
		l := n.limiter("api", hybrid.PerDay(1), hybrid.LimiterOptions{
			Accuracy: hybrid.Exact, LimitFor: func(string) (hybrid.Limit, bool) { return limit, true },
		})
		for range 12 {
			allow(t, l, "k", 1)
		}
		limit = hybrid.PerDay(100)
		if err := l.Reset(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		if got := admits(t, l, "k", 200); got != 100 {
			t.Errorf("%d admitted after Reset, want 100", got)
		}
	})
}

// After a Reset or a Refund the node that asks first admits within the 10 s that the
// documentation gives, whatever was going on before. It may take what was freed as a
// slice: then another node waits until it is used or returned, for a minute at most.
func TestWhatIsFreedIsFoundInTime(t *testing.T) {
	limits := []hybrid.Limit{
		hybrid.PerMinute(100), hybrid.PerHour(50), hybrid.PerHour(1000), hybrid.PerDay(300), hybrid.PerMinute(1000), hybrid.Window(100, time.Hour),
	}
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 14))
		limit := limits[rng.IntN(len(limits))]
		accuracy := []hybrid.Accuracy{hybrid.Exact, hybrid.Strict, hybrid.Balanced}[rng.IntN(3)]
		story(t, func(w *world) {
			var nodes [3]*hybrid.Limiter
			for i := range nodes {
				nodes[i] = w.node(hybrid.Options{}).limiter("api", limit, hybrid.LimiterOptions{Accuracy: accuracy})
			}
			time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Second))))
			gap := time.Duration(1 + rng.Int64N(int64(50*time.Millisecond)))
			for range int(limit.Burst()) + 100 { // until it is used up, by all of them
				allow(t, nodes[rng.IntN(3)], "k", 1)
				time.Sleep(gap)
			}
			a, b := nodes[0], nodes[1]
			reset := rng.IntN(2) == 0
			if reset {
				if err := a.Reset(ctx, "k"); err != nil {
					t.Error(err)
				}
			} else if err := a.Refund("k", 1+limit.Burst()/10); err != nil {
				t.Error(err)
			}
			freed := time.Now()
			within := 10500 * time.Millisecond
			for i, l := range []*hybrid.Limiter{a, b} {
				name := []string{"asking", "other"}[i]
				r := allow(t, l, "k", 1)
				for ; !r.Allowed && time.Since(freed) < 2*time.Minute; r = allow(t, l, "k", 1) {
					time.Sleep(min(r.RetryAfter, time.Second))
				}
				if took := time.Since(freed); took > within {
					t.Errorf("seed %d: %v, %v, reset %t: the %s node admits after %v", seed, limit, accuracy, reset, name, took)
				}
				within = time.Minute
			}
		})
	}
}
