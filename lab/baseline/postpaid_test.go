package baseline

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

const d = 100 * time.Millisecond

// In the interval in which the limit is reached, each of 20 nodes goes on as if
// it were alone: together they admit what is offered until all have been told.
func TestPostPaidOverAdmitsAnIntervalOfLoad(t *testing.T) {
	for _, limit := range []hybrid.Limit{hybrid.PerMinute(1000), hybrid.Window(1000, time.Minute)} {
		inBubble(t, PostPaid(d), 20, limit, func(r *run) {
			const rate = 2000 // a second: the limit is gone within half of one
			r.uniform(seeded(), rate, 10*time.Second, 20)
			// Half an interval until a count is reported, half until it is read, on average.
			near(t, limit.String(), r.report().Excess, rate*d.Seconds())
		})
	}
}

// The longer the interval, the more; never more than a whole limit per node.
func TestPostPaidGrowsWithTheInterval(t *testing.T) {
	last := -1.0
	for _, every := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, d, time.Second} {
		inBubble(t, PostPaid(every), 20, hybrid.PerMinute(1000), func(r *run) {
			r.uniform(seeded(), 2000, 5*time.Second, 20)
			if got := r.report().Excess; got <= last || got > 19*1000 {
				t.Errorf("every %v: %.0f too many, before %.0f", every, got, last)
			} else {
				last = got
			}
		})
	}
}

// What was admitted beyond the limit is paid back: in the long run the rate holds.
func TestPostPaidKeepsTheRate(t *testing.T) {
	inBubble(t, PostPaid(d), 20, hybrid.PerSecond(100), func(r *run) {
		r.uniform(seeded(), 500, 60*time.Second, 20)
		near(t, "admitted of ideal", r.limit.Compare(r.requests).Ratio(), 1)
	})
}

// A report costs an operation for each active key; nobody waits, idle keys are free.
func TestPostPaidCost(t *testing.T) {
	inBubble(t, PostPaid(d), 2, hybrid.PerSecond(100), func(r *run) {
		time.Sleep(d / 4)
		for range 5 {
			r.ask(0, "a", 1)
			r.ask(0, "b", 1)
			r.ask(1, "a", 1)
		}
		time.Sleep(10 * d)
		if c := r.Cost(); c.Operations != 3 || c.RoundTrips != 2 || c.Blocked != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// One node alone knows everything, and exceeds nothing.
func TestPostPaidOnOneNodeIsExact(t *testing.T) {
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(100), hybrid.Window(100, time.Second)} {
		inBubble(t, PostPaid(d), 1, limit, func(r *run) {
			r.uniform(seeded(), 300, 20*time.Second, 1)
			if err := r.report().Err(); err != nil {
				t.Errorf("%v: %v", limit, err)
			}
		})
	}
}
