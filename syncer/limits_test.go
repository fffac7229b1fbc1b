package syncer

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// asked counts the calls of a PlanFor by key, and when each was last made.
type asked struct {
	mu    sync.Mutex
	calls map[string]int
	last  map[string]time.Time
	least time.Duration // the shortest time between two calls for one key
}

func newAsked() *asked {
	return &asked{calls: map[string]int{}, last: map[string]time.Time{}, least: time.Hour}
}

func (a *asked) note(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls[key]++; a.calls[key] > 1 {
		a.least = min(a.least, time.Since(a.last[key]))
	}
	a.last[key] = time.Now()
}

// A key's own limit is asked for when the key is new and at its settles, but
// not twice within a sync interval, however short the limit's horizon is.
func TestPlansAreAskedForSparingly(t *testing.T) {
	for _, rule := range []slice.Rule{bucket(100, 50*time.Millisecond), bucket(100, time.Minute)} {
		story(t, func(t *testing.T, w *world) {
			plan, calls := NewPlan(rule, exactly), newAsked()
			l := w.add(LimiterConfig{Name: "l", Plan: plan, PlanFor: func(key string) *Plan {
				calls.note(key)
				return plan
			}})
			for range 1000 {
				allow(l, "k", 1)
				time.Sleep(7 * time.Millisecond)
			}
			if calls.least < 100*time.Millisecond {
				t.Errorf("asked twice within %v", calls.least)
			}
			if n := calls.calls["k"]; n < 10 {
				t.Errorf("asked %d times in 7 s of traffic: changes are not seen", n)
			}
		})
	}
}

// A request may hold an account that a sweep retires under it. The account that
// follows asks for the key's limit, and neither of the two asks twice.
func TestASweptAccountLeavesTheAskingToTheNext(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		plan, calls := NewPlan(bucket(100, time.Second), exactly), newAsked()
		l := w.add(LimiterConfig{Name: "l", Plan: plan, PlanFor: func(key string) *Plan {
			calls.note(key)
			return plan
		}})
		time.Sleep(w.cfg.SyncInterval / 2) // the node's own sweeps find nothing due
		a := l.Account("k", "k")
		time.Sleep(w.cfg.SyncInterval)
		a.RefreshPlan(w.Now())
		if a.Retire(false) {
			t.Fatal("retired with a limit that was asked for just now")
		}
		time.Sleep(w.cfg.SyncInterval)
		if !a.Retire(false) {
			t.Fatal("not retired")
		}
		a.Unlink()
		a.RefreshPlan(w.Now())
		l.Account("k", "k")
		equal(t, "calls", calls.calls["k"], 3)
		equal(t, "between two", calls.least, w.cfg.SyncInterval)
	})
}

// No lock is held while the user's function runs: it may use the limiter.
func TestAPlanForMayUseTheLimiter(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		var l *Limiter
		plan := NewPlan(bucket(100, time.Second), strict)
		l = w.add(LimiterConfig{Name: "l", Plan: plan, PlanFor: func(key string) *Plan {
			if key != "inner" {
				allowCtx(context.Background(), l, "inner", 1)
				l.s.Collect()
				l.SetPlan(plan)
				if a, ok := l.Load(key); ok { // at its settles
					a.Charge(1)
					a.View(w.Now())
				}
			}
			return nil
		}})
		began := time.Now()
		for range 20 {
			allow(l, "k", 1)
			time.Sleep(30 * time.Millisecond)
		}
		if d := time.Since(began); d > 900*time.Millisecond {
			t.Errorf("took %v", d)
		}
	})
}

func TestAKeysOwnPlanIsFollowed(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		tier := NewPlan(bucket(2, time.Minute), strict)
		l := w.add(LimiterConfig{Name: "l", Plan: NewPlan(bucket(1000, time.Minute), strict), PlanFor: func(key string) *Plan {
			mu.Lock()
			defer mu.Unlock()
			if key == "small" {
				return tier
			}
			return nil
		}})
		got := 0
		for range 5 {
			if allow(l, "small", 1).allowed {
				got++
			}
			if !allow(l, "other", 1).allowed {
				t.Error("another key was denied")
			}
		}
		equal(t, "admitted of the small tier", got, 2)
		mu.Lock()
		tier = NewPlan(bucket(500, time.Minute), strict)
		mu.Unlock()
		time.Sleep(7 * time.Second) // the denial's period
		allow(l, "small", 1)        // asks the store, and for the plan
		time.Sleep(time.Second)
		w.must("after the upgrade", allow(l, "small", 400), true, byStore)
	})
}

// A new limit is in force at once: slices of the old one go back, and a denial
// under it is forgotten.
func TestSetPlan(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(60_000, time.Minute)
		l := w.limiter(rule, strict)
		a := hold(t, l, "k")
		l.SetPlan(NewPlan(bucket(30_000, time.Minute), strict))
		time.Sleep(time.Millisecond)
		equal(t, "tokens held", held(a), 0)
		if _, lent := w.store.state("l/k", rule); lent != 0 {
			t.Errorf("%d tokens are still lent", lent)
		}
		w.store.use("l/k", rule, 60_000)
		w.must("a full account", allow(l, "k", 1), false, byStore)
		w.must("from memory", allow(l, "k", 1), false, byMemo)
		l.SetPlan(NewPlan(bucket(90_000, time.Minute), strict))
		w.must("with more room", allow(l, "k", 1), true, byStore)
	})
}

// A limit of 0 denies everything from that moment on, and sends the store
// nothing that it could not read.
func TestALimitOfNothing(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		a := hold(t, l, "k")
		a.Charge(held(a) + 1)
		before := len(w.store.calls())
		l.SetPlan(NewPlan(slice.Rule{Burst: 60_000}, strict))
		equal(t, "tokens held", held(a), 0)
		equal(t, "told", allow(l, "k", 1), answer{path: byStore, retry: slice.Never})
		time.Sleep(5 * time.Minute)
		w.atRest(t)
		equal(t, "calls", len(w.store.calls()), before)
		l.SetPlan(NewPlan(bucket(60_000, time.Minute), strict))
		w.must("afterwards", allow(l, "k", 1), true, byStore)
	})
}

// The same while requests wait for a settle: they are denied, not judged by the
// failure policy, and what the settle under way brings is not used.
func TestALimitOfNothingDuringASettle(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(5 * time.Millisecond)
		l := w.add(LimiterConfig{Name: "l", Plan: NewPlan(bucket(60_000, time.Minute), strict), Policy: key.FailOpen})
		hold(t, l, "k")
		a, _ := l.Load("k")
		a.Cell.Take(held(a), &w.Dead)
		c := callers{l: l}
		c.ask(10)
		time.Sleep(time.Millisecond)
		c.ask(10_000) // of the next settle
		l.SetPlan(NewPlan(slice.Rule{Burst: 60_000}, strict))
		c.wg.Wait()
		w.must("whose settle was under way", c.answers[0], true, byStore)
		equal(t, "who waited", c.answers[1], answer{path: byStore, retry: slice.Never})
		equal(t, "tokens held", held(a), 0)
	})
}

// The limiters of a node are apart.
func TestNamesAreTaken(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		plan := NewPlan(bucket(1, time.Minute), strict)
		for i := range 3 {
			l := w.add(LimiterConfig{Name: fmt.Sprint(i), Plan: plan})
			w.must("its own token", allow(l, "k", 1), true, byStore)
		}
		if l, fresh, err := w.Add(LimiterConfig{Name: "1", Plan: plan}); l != nil || fresh || err != nil {
			t.Errorf("a second one of a name: %v, %t, %v", l, fresh, err)
		}
		equal(t, "limiters", len(w.Limiters()), 3)
	})
}
