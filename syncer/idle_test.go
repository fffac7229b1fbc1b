package syncer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/fleet"
	"github.com/hybridlimit/hybrid/slice"
)

// nodes is several nodes on one store, each with a limiter.
func onNodes(t *testing.T, nodes int, rule slice.Rule, test func(store *fake, all []*Limiter)) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(t)
		store.shared = true
		store.slow(600 * time.Microsecond)
		var worlds []*world
		var all []*Limiter
		for i := range nodes {
			w := newWorld(t, store, func(c *Config) { c.Member = fmt.Sprint("node ", i) })
			worlds = append(worlds, w)
			all = append(all, w.add(LimiterConfig{Name: "l", Plan: NewPlan(rule, strict)}))
		}
		time.Sleep(fleet.TTL + time.Second)
		test(store, all)
		for _, w := range worlds {
			w.end()
		}
	})
}

// A cost of the whole burst, alone after many nodes have served a few requests:
// what idle slices hold is called back, though it is little.
func TestABigCostIsNotLockedOut(t *testing.T) {
	rule := bucket(1000, 20*time.Second)
	onNodes(t, 20, rule, func(store *fake, all []*Limiter) {
		for _, l := range all[1:] {
			for range 5 {
				allow(l, "k", 1)
				time.Sleep(50 * time.Millisecond)
			}
		}
		time.Sleep(25 * time.Second)
		if _, lent := store.state("l/k", rule); lent == 0 {
			t.Fatal("no slice is idle")
		}
		start := time.Now()
		for {
			r := allow(all[0], "k", 1000)
			if r.allowed {
				break
			}
			time.Sleep(r.retry)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("it was admitted after %v", d)
		}
	})
}

// A flood ends, and the last token of a burst of one goes back: it is the limit.
func TestTheLastTokenGoesBack(t *testing.T) {
	for phase := range 50 {
		rule := bucket(1, time.Second)
		onNodes(t, 1, rule, func(store *fake, all []*Limiter) {
			flood(all[0], "k", 1, 50*time.Millisecond, 20*time.Second+time.Duration(phase)*13*time.Millisecond)
			time.Sleep(3 * time.Second)
			if _, lent := store.state("l/k", rule); lent != 0 {
				t.Errorf("phase %d: %d lent three seconds later", phase, lent)
			}
		})
	}
}

// Costs of 1 and 2 below the limit: a slice that is no multiple of the larger does
// not make a grant look like a refusal.
func TestMixedCostsBelowTheLimitAreAdmitted(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(1000, 10*time.Second)
		l := w.limiter(rule, strict)
		random := rand.New(rand.NewPCG(1, 2))
		w.store.use("l/k", rule, 800)
		for end := time.Now().Add(200 * time.Second); time.Now().Before(end); {
			if r := allow(l, "k", 1+random.Int64N(2)); !r.allowed {
				t.Fatalf("denied at 95 %% of the limit: %+v", r)
			}
			time.Sleep(time.Duration(random.ExpFloat64() * 1.5 / 95 * float64(time.Second)))
		}
	})
}

// A slice that nobody uses and nobody misses is left alone until it ends: a million
// of them would keep a core busy.
func TestIdleSlicesAreLeftAlone(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, time.Second), strict)
		for range 3 {
			allow(l, "k", 1)
			time.Sleep(10 * time.Millisecond)
		}
		if peek(l, "k").SliceEnds == 0 {
			t.Fatal("no slice")
		}
		time.Sleep(2 * time.Second)
		if c := peek(l, "k"); c.SliceEnds == 0 || c.NextLook < 30*time.Second {
			t.Errorf("a lease for %v, looked at in %v", c.SliceEnds, c.NextLook)
		}
		time.Sleep(2 * time.Minute)
		if c := peek(l, "k"); c != nil {
			t.Errorf("two epochs later there is still %+v", *c)
		}
		equal(t, "accounts on the timer queue", w.timers.len(), 0)
	})
}
