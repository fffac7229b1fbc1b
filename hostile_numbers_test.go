package hybrid

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

// This file is numbers at the edges of what they can be: costs of callers,
// limits of whoever configures.

// edgeCosts are where costs begin, end, and stop being exact.
var edgeCosts = []int64{math.MinInt64, math.MinInt64 + 1, -1 << 53, -1, 0, 1, 2, math.MaxUint32, math.MaxUint32 + 1,
	1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}

// Every method, with every cost at an edge, on a limit that holds some of them and on one that holds nearly
// none: the answer is the documented one, and the account is as it was.
func TestCostsAtTheEdges(t *testing.T) {
	for _, limit := range []Limit{slow(5), PerDay(1 << 53), Per(1<<53, maxPeriod), Window(1<<53, 24*time.Hour), PerSecond(0)} {
		for _, acc := range []Accuracy{Balanced, Strict, Exact} {
			setup := fleetSetup{nodes: 1, limit: limit, limiter: LimiterOptions{Accuracy: acc}}
			t.Run(fmt.Sprint(limit, " ", acc), func(t *testing.T) {
				both(t, setup, func(f *fleet) {
					for i, cost := range edgeCosts {
						edgeCost(f, fmt.Sprint("key ", i), limit, cost)
					}
					if st := f.stats(); st.FallbackAllowed+st.FallbackDenied+st.NotRun+st.Unknown+st.Rebuilt > 0 {
						f.t.Errorf("something went wrong on the way: %+v", st)
					}
				})
			})
		}
	}
}

const maxPeriod = (1 << 53) * time.Microsecond

// edgeCost asks for one cost by all methods, each on a key of its own.
func edgeCost(f *fleet, key string, limit Limit, cost int64) {
	n, l, fits := f.nodes[0], f.lims[0], cost <= limit.Burst()
	r, err := l.AllowN(ctx, key, cost)
	f.answers("AllowN", limit, cost, r, err)
	r, err = n.AllowAll(ctx, Check{l, key + " all", cost})
	if cost != 0 { // 0 means 1 there
		f.answers("AllowAll", limit, cost, r, err)
	}
	switch err := l.WaitN(ctx, key+" wait", cost); {
	case cost < 0 && !errors.Is(err, ErrInvalidCost):
		f.t.Errorf("WaitN(%d): %v", cost, err)
	case cost > 0 && !fits && !errors.Is(err, ErrExceedsBurst):
		f.t.Errorf("WaitN(%d): %v", cost, err)
	case cost >= 0 && fits && err != nil:
		f.t.Errorf("WaitN(%d): %v", cost, err)
	}
	for name, adjust := range map[string]func() error{
		"Charge": func() error { return l.Charge(key+" adjusted", cost) },
		"Refund": func() error { return l.Refund(key+" adjusted", cost) },
	} {
		err := adjust()
		if misuse := cost < 0 || cost > 1<<53; misuse != errors.Is(err, ErrInvalidCost) || !misuse && err != nil {
			f.t.Errorf("%s(%d): %v", name, cost, err)
		}
	}
}

// answers judges one answer for a fresh key.
func (f *fleet) answers(method string, limit Limit, cost int64, r Result, err error) {
	f.t.Helper()
	if cost < 0 {
		if !errors.Is(err, ErrInvalidCost) || r != (Result{}) {
			f.t.Errorf("%s(%d): %+v, %v", method, cost, r, err)
		}
		return
	}
	fits := cost <= limit.Burst() && limit.Count() > 0
	wrong := err != nil || r.Allowed != fits || r.Limit != limit.Burst() || r.Remaining < 0 || r.Remaining > r.Limit || r.ResetAfter < 0
	if !fits && r.RetryAfter != Never || fits && r.RetryAfter != 0 {
		wrong = true
	}
	if wrong {
		f.t.Errorf("%s(%d) of %v: %+v, %v", method, cost, limit, r, err)
	}
}

// edgeLimits are as slow, fast, large and short as limits can be.
func edgeLimits() []Limit {
	const year = 365 * 24 * time.Hour
	return []Limit{
		Per(1, 10*year), Per(1, maxPeriod), Per(3, maxPeriod), PerSecond(100_000_000), Per(1<<53-1, time.Microsecond), Per(1, time.Microsecond),
		PerSecond(1).WithBurst(1 << 50), PerSecond(1).WithBurst(1 << 53), Per(1, maxPeriod).WithBurst(1 << 53),
		PerSecond(100_000_000).WithBurst(1), Per(1<<53, time.Microsecond).WithBurst(1), PerDay(1 << 53), PerHour(1 << 50),
		Window(1, time.Microsecond), Window(100, time.Millisecond), Window(1<<53, time.Millisecond), Window(7, 10*year), Window(1<<53, maxPeriod), Window(1, maxPeriod),
	}
}

// Limits at the edges admit their burst, say when more can come, and leave keys in
// the store that live as long as there is something to remember.
func TestLimitsAtTheEdges(t *testing.T) {
	for _, limit := range edgeLimits() {
		for _, acc := range []Accuracy{Balanced, Strict, Exact} {
			setup := fleetSetup{nodes: 1, limit: limit, limiter: LimiterOptions{Accuracy: acc}}
			t.Run(fmt.Sprint(limit, " ", acc), func(t *testing.T) {
				both(t, setup, func(f *fleet) { edgeLimit(f, limit) })
			})
		}
	}
}

func edgeLimit(f *fleet, limit Limit) {
	if limit.Windowed() { // not across an edge that is near
		if left := time.Until(time.Now().Truncate(limit.Period()).Add(limit.Period())); limit.Period() > time.Minute && left < time.Second {
			time.Sleep(left)
		}
	}
	fill := fullAfter(limit)
	b := limit.Burst()
	for i, cost := range []int64{b - b/2, b / 2} {
		if r := f.ask(0, "k", max(cost, 1)); cost > 0 && (!r.Allowed || r.Path == PathFallback) {
			f.t.Errorf("part %d of the burst: %+v", i, r)
		}
	}
	slowly := fill > 100*time.Second // so slowly that a test sees no refill of a hundredth
	r := f.ask(0, "k", max(b/100, 1))
	if slowly && r.Allowed {
		f.t.Errorf("a hundredth more than the burst: %+v", r)
	}
	if !r.Allowed && (r.RetryAfter <= 0 || r.RetryAfter > fill && fill < centuries) {
		f.t.Errorf("retry after %v, where %v fill the account", r.RetryAfter, fill)
	}
	if r.ResetAfter < 0 || slowly && r.ResetAfter < fill/2 && !limit.Windowed() {
		f.t.Errorf("reset after %v, where %v fill the account", r.ResetAfter, fill)
	}
	f.edgeTTL(limit, fill, slowly)
	if p, err := f.lims[0].Peek(ctx, "k"); err != nil || p.Remaining < 0 || p.Remaining > b || p.Path != PathExact {
		f.t.Errorf("Peek: %+v, %v", p, err)
	}
	for _, change := range []error{f.lims[0].Charge("k", 1), f.lims[0].Refund("k", 1), f.nodes[0].Flush(ctx), f.lims[0].Reset(ctx, "k")} {
		if change != nil {
			f.t.Error(change)
		}
	}
	if st := f.stats(); st.FallbackAllowed+st.FallbackDenied+st.NotRun+st.Unknown+st.Rebuilt > 0 {
		f.t.Errorf("something went wrong on the way: %+v", st)
	}
	f.checkBound(limit, f.lims[0].opts.Accuracy.Over())
}

// centuries is the longest time that a Duration can hold, with room to add a little.
const centuries = Never - time.Hour

// fullAfter is how long an empty account takes to fill, up to some centuries.
func fullAfter(l Limit) time.Duration {
	if l.Windowed() {
		return l.Period()
	}
	ns := float64(l.Burst()) * float64(l.Period()) / float64(l.Count())
	return time.Duration(min(ns, float64(centuries))) + time.Millisecond
}

// edgeTTL fails the test if the account lives for ever, or if what it says is
// forgotten too early; servers overflow beyond 285 years.
func (f *fleet) edgeTTL(limit Limit, fill time.Duration, slowly bool) {
	left := f.ttl("k")
	if most := fill + 2*time.Minute + time.Second; left > most {
		f.t.Errorf("the account lives for %v, at most %v are of use", left, most)
	}
	if slowly && !limit.Windowed() && left < min(fill, maxPeriod)/10*9 {
		f.t.Errorf("the account lives for %v, but fills in %v", left, fill)
	}
	if slowly && limit.Windowed() && left == 0 {
		f.t.Error("the account is gone before its window")
	}
}

// A client that sends costs beyond all limits cannot make an operation of Redis, or a key that is remembered.
func TestHugeCostsCostNothing(t *testing.T) {
	inBubble(t, strict(1, PerSecond(10)), func(f *fleet) {
		for i := range 1000 {
			if r := f.ask(0, fmt.Sprint(i), math.MaxInt64); r.RetryAfter != Never {
				t.Fatalf("%+v", r)
			}
		}
		if st := f.stats(); st.Operations > 0 || st.Blocked > 0 {
			t.Errorf("%d operations, %d waited", st.Operations, st.Blocked)
		}
	})
}
