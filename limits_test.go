package hybrid

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is the cases of limits that are hard to share: shares below one
// token, costs above a share, limits that change, windows that end.

// admittedOver loads a fleet and fails the test unless it admits at least 98 %
// of what a perfect central limiter would, within the bound and with no more
// operations than requests.
func (f *fleet) admittedOver(limit Limit, times float64, d time.Duration, cost int64) {
	f.t.Helper()
	rate := times * float64(limit.Count()) / limit.Period().Seconds() / float64(cost)
	f.load(rand.New(rand.NewPCG(1, 2)), rate, d, uniform, cost)
	out := oracleOf(limit).Compare(f.requests["k"])
	n := f.tallied()
	f.t.Logf("%v, cost %d, %vx: admitted %d of %d, %.2f %%, %d operations for %d requests",
		limit, cost, times, out.Admitted, out.Ideal, 100*out.Ratio(), n.executed, n.requests)
	if out.Ratio() < 0.98 {
		f.t.Errorf("%v, cost %d, %vx: admitted %.2f %% of the ideal, want 98", limit, cost, times, 100*out.Ratio())
	}
	f.checkBound(limit, 0)
	f.checkCost()
}

// A fleet of more nodes than tokens: shares round down to nothing.
func TestShareBelowOneToken(t *testing.T) {
	longUnderRace(t)
	for _, times := range []float64{1.4, 10} {
		inBubble(t, strict(5, PerSecond(3)), func(f *fleet) {
			f.admittedOver(PerSecond(3), times, time.Minute, 1)
		})
		inBubble(t, strict(20, PerMinute(5)), func(f *fleet) {
			f.admittedOver(PerMinute(5), times, 4*time.Minute, 1)
		})
	}
}

// Parts of costs that stay stuck in slices deny such keys for ever.
func TestCostsAboveAShare(t *testing.T) {
	longUnderRace(t)
	for _, times := range []float64{1.4, 100} {
		inBubble(t, strict(20, PerMinute(20_000)), func(f *fleet) {
			f.admittedOver(PerMinute(20_000), times, 5*time.Minute, 2000)
		})
		inBubble(t, strict(4, PerMinute(1000)), func(f *fleet) {
			f.admittedOver(PerMinute(1000), times, 15*time.Minute, 1000)
		})
	}
}

// A slice granted in one window is worth nothing in the next, though its node
// returns it there.
func TestWindowEdge(t *testing.T) {
	limit := Window(100, time.Second)
	inBubble(t, strict(4, limit), func(f *fleet) {
		for range 10 {
			sleepToEdge(500 * time.Millisecond)
			f.everyone(2, 50*time.Millisecond, "k", 1)
			granted := f.settle(limit, slice.Usage{Want: 60, Least: 1, Unit: 1, Divisor: 1})
			if granted.Granted != 60 {
				t.Errorf("granted %d of 60", granted.Granted)
			}
			sleepToEdge(0)
			before := f.used("k")
			f.everyone(5, 10*time.Millisecond, "k", 1)
			back := f.settle(limit, slice.Usage{Tag: granted.Tag, Spent: 10, Returned: 50})
			if !back.Dropped {
				t.Errorf("a slice of the last window was taken back: %+v", back)
			}
			for range 8 { // over most of the second window
				f.everyone(10, 100*time.Millisecond, "k", 1)
			}
			if got := f.used("k") - before; got != 100 {
				t.Errorf("%d admitted in the second window, want 100", got)
			}
		}
		f.checkBound(limit, 0)
		f.checkCost()
	})
}

// sleepToEdge sleeps into the next second, so far.
func sleepToEdge(beyond time.Duration) {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + beyond)))
}

// settle settles k as one more node would.
func (f *fleet) settle(l Limit, u slice.Usage) slice.Grant {
	f.t.Helper()
	st := &slice.Settle{Account: f.account("k"), Rule: l.Rule(), Usage: u}
	f.truth.Settle(ctx, []*slice.Settle{st})
	if st.Outcome != slice.Ran {
		f.t.Fatal(st.Err)
	}
	return st.Grant
}

// A window sees a full floor at its start and the refill during it: together
// they must not be more than the part that floors may add.
func TestFloorsInAWindow(t *testing.T) {
	limit := Window(1000, time.Minute)
	inBubble(t, fleetSetup{nodes: 20, limit: limit}, func(f *fleet) {
		time.Sleep(2 * time.Minute) // floors are earned
		rng := rand.New(rand.NewPCG(1, 1))
		hammered := func(f *fleet, rng *rand.Rand, _ time.Duration) int {
			if rng.IntN(3) > 0 {
				return 0
			}
			return rng.IntN(20)
		}
		for range 2 {
			before := f.used("k")
			f.load(rng, 60, time.Minute, hammered, 1)
			got := f.used("k") - before
			if got < 1000 || got > 1100 {
				t.Errorf("%d admitted in a window of 1000, want 1000 to 1100", got)
			}
		}
		if n := f.stats().FloorAllowed; n == 0 {
			t.Error("no floor was used")
		}
		f.checkBound(limit, 0.10)
		f.checkCost()
	})
}

// Denied, polled, and asked again after exactly the time that was told first.
// Polls that were charged, or that wrote with rounding, would spoil it.
func TestExactRetryAfter(t *testing.T) {
	limits := []Limit{PerHour(3), PerHour(7), PerMinute(11), PerMinute(1000), PerSecond(1), PerSecond(3),
		PerSecond(99_999), PerSecond(40_000_000), PerHour(1 << 40), Window(3, time.Hour), Window(100, time.Second)}
	if raceDetector {
		limits = limits[3:6]
	}
	for _, acc := range exactly {
		for _, limit := range limits {
			setup := fleetSetup{nodes: 1, limit: limit, limiter: LimiterOptions{Accuracy: acc},
				options: Options{SyncInterval: 10 * time.Second}} // hours would take long
			inBubble(t, setup, func(f *fleet) {
				if r := f.ask(0, "k", limit.Burst()); !r.Allowed {
					t.Fatalf("%v: the burst is denied: %+v", limit, r)
				}
				cost := max(limit.Burst()/100, 1) // more than refills in some round trips: a first one makes a connection
				first := f.ask(0, "k", cost)
				if first.Allowed {
					t.Fatalf("%v: admitted beyond the burst", limit)
				}
				// A poll may be admitted before its time, when the node had asked for
				// more: that is the promise kept early, and what it took is gone.
				start, early := time.Now(), false
				for i := range 20 {
					time.Sleep(time.Until(start.Add(first.RetryAfter * time.Duration(i) / 20)))
					early = f.ask(0, "k", cost).Allowed || early
				}
				time.Sleep(time.Until(start.Add(first.RetryAfter)))
				if r := f.ask(0, "k", cost); !r.Allowed && !early {
					t.Errorf("%v %v: denied again after %v: %+v", acc, limit, first.RetryAfter, r)
				}
				if early && acc == Exact {
					t.Errorf("%v: admitted before %v have passed, though nobody asks in advance", limit, first.RetryAfter)
				}
				f.checkBound(limit, 0)
			})
		}
	}
}
