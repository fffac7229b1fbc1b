package baseline

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Exact never exceeds, decides as the ideal account does, and makes everybody wait.
func TestExactIsTheIdeal(t *testing.T) {
	random := func() time.Duration { return rand.N(4 * trip) }
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(100), hybrid.Window(100, time.Second), hybrid.PerSecond(50).WithBurst(7)} {
		inBubbleAt(t, Exact, 20, limit, random, func(r *run) {
			r.uniform(seeded(), 300, 10*time.Second, 20)
			if err := r.report().Err(); err != nil {
				t.Errorf("%v: %v", limit, err)
			}
			if o := r.limit.Compare(r.requests); o.Ratio() != 1 || o.FalseDenials != 0 {
				t.Errorf("%v: %+v", limit, o)
			}
			if c, n := r.Cost(), int64(len(r.requests)); c.Operations != n || c.Blocked != n || c.RoundTrips != n {
				t.Errorf("%d requests cost %+v", n, c)
			}
		})
	}
}

// The decision counts halfway through the round trip.
func TestExactCountsWhenTheStoreExecutes(t *testing.T) {
	inBubble(t, Exact, 1, hybrid.PerSecond(1), func(r *run) {
		start := time.Now()
		a := r.ask(0, "k", 1)
		if took := time.Since(start); took != trip || a.At != start.Add(trip/2).UnixNano() || !a.Blocked {
			t.Errorf("took %v, counted %v after the start", took, time.Duration(a.At-start.UnixNano()))
		}
	})
}
