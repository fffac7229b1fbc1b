package hybrid

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// This file is clocks that step: the store's, as a failover to a server with
// another clock does it, and a node's own.

// clockStep is a step of the store's clock, and what docs/accuracy.md allows it
// to cost.
type clockStep struct {
	by     time.Duration
	more   float64       // of a burst, that may be admitted beyond the limit
	within time.Duration // in which keys are admitted again as they should be
}

var clockSteps = []clockStep{
	{10 * time.Second, 1, 0},
	{-10 * time.Second, 0, 10 * time.Second},
	{time.Hour, 1, 0},
	{-100 * time.Second, 0, 100 * time.Second},
	{-time.Hour, 1, 3 * time.Minute}, // more than two lease epochs: a fault of the store
}

// Fleets under load, whose store's clock steps in the middle.
func TestStepsOfTheStoresClock(t *testing.T) {
	longUnderRace(t)
	for _, step := range clockSteps {
		for limit, dials := range map[Limit][]Accuracy{
			PerMinute(600): {Balanced, Strict}, PerHour(3600).WithBurst(50): {Strict}, PerSecond(4).WithBurst(30): {Balanced, Exact},
		} {
			for _, acc := range dials {
				t.Run(fmt.Sprint(step.by, " ", limit, " ", acc), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { stepUnderLoad(t, step, limit, acc) })
				})
			}
		}
	}
}

func stepUnderLoad(t *testing.T, step clockStep, limit Limit, acc Accuracy) {
	store := ledger.NewStore()
	nodes, limiters := make([]*Node, 4), make([]*Limiter, 4)
	for i := range nodes {
		nodes[i], limiters[i] = onLedger(t, store, Options{}, limit, &LimiterOptions{Accuracy: acc})
	}
	rng := rand.New(rand.NewPCG(3, uint64(step.by)))
	perSecond := float64(limit.Count()) / limit.Period().Seconds()
	load := func(d time.Duration) (asked []oracle.Request) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			time.Sleep(time.Duration(rng.ExpFloat64() / perSecond / 1.4 * float64(time.Second)))
			at := time.Now().UnixNano()
			r := allow(t, limiters[rng.IntN(4)], "k", 1)
			asked = append(asked, oracle.Request{At: at, Cost: 1, Allowed: r.Allowed})
			if most := step.within + 5*time.Minute; !r.Allowed && r.RetryAfter > most {
				t.Errorf("denied for %v", r.RetryAfter)
				return asked
			}
		}
		return asked
	}
	asked := load(2 * time.Minute)
	store.Skew(step.by)
	asked = append(asked, load(step.within+time.Second)...)
	after := load(4 * time.Minute)
	asked = append(asked, after...)

	bound := oracle.New(limit.Count(), limit.Period(), limit.Burst()+int64(step.more*float64(limit.Burst()))).Over(acc.Over())
	if err := bound.Check(oracle.Admissions(asked)).Err(); err != nil {
		t.Errorf("with %v of a burst more: %v", step.more, err)
	}
	var admitted float64
	for _, r := range after {
		if r.Allowed {
			admitted++
		}
	}
	if ideal := perSecond * (4 * time.Minute).Seconds(); admitted < 0.93*ideal {
		t.Errorf("admitted %v of %v in the four minutes that begin %v after the step", admitted, ideal, step.within)
	}
	for _, n := range nodes {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A step between two windows, and over the end of one, admits one quota more, once.
func TestStepsOfTheStoresClockInAWindow(t *testing.T) {
	const quota = 100
	limit := Window(quota, 20*time.Second)
	for _, by := range []time.Duration{20 * time.Second, -20 * time.Second, time.Hour, -time.Hour} { // whole windows
		for _, acc := range exactly {
			synctest.Test(t, func(t *testing.T) {
				store := ledger.NewStore()
				n, l := onLedger(t, store, Options{}, limit, &LimiterOptions{Accuracy: acc})
				sleepToEdge(0)
				time.Sleep(time.Until(time.Now().Truncate(limit.Period()).Add(limit.Period())))
				for window := range 12 {
					got := 0
					for i := range 200 {
						if window == 5 && i == 100 {
							store.Skew(by)
						}
						if allow(t, l, "k", 1).Allowed {
							got++
						}
						time.Sleep(100 * time.Millisecond)
					}
					most, least := quota, quota-5
					if window == 5 {
						most = 2 * quota
					}
					if by < 0 && window >= 5 && window <= 12 {
						least = 0 // a step back may cost what it goes back
					}
					if window == 11 {
						least = quota - 5
					}
					if got > most || got < least {
						t.Errorf("step of %v, %v: %d admitted in window %d, allowed %d to %d", by, acc, got, window, least, most)
					}
				}
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The same step on both servers, for which a server whose clock differs is one whose accounts are of another
// time: a failover to a server whose clock is behind finds them in the future.
func TestFailoverToAnotherClock(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration // of the new server's clock
		least int           // admitted at once, of a burst of 50 that was used up
		most  int
	}{
		{10 * time.Second, 44, 60}, // a burst, and what came back while the test ran
		{time.Hour, 44, 60},
		{-10 * time.Second, 0, 0},
		{-time.Hour, 3, 50}, // it is taken to be of now, and refills
	} {
		t.Run(c.ahead.String(), func(t *testing.T) {
			both(t, fleetSetup{nodes: 1, limit: PerSecond(5).WithBurst(50), limiter: LimiterOptions{Accuracy: Exact}}, func(f *fleet) {
				if n := f.exhaust("k", 1); n < 50 || n > 55 {
					f.t.Errorf("admitted %d of 50 at first", n)
				}
				f.shift(f.account("k"), c.ahead)
				time.Sleep(300 * time.Millisecond) // denials from memory end
				f.ask(0, "k", 1)                   // the account is looked at
				time.Sleep(1100 * time.Millisecond)
				if n := f.exhaust("k", 1); n < c.least || n > c.most {
					f.t.Errorf("admitted %d, want %d to %d", n, c.least, c.most)
				}
				if left := f.ttl("k"); left == 0 || left > 2*time.Minute {
					f.t.Errorf("the account lives for %v", left)
				}
			})
		})
	}
}

// shift makes an account as old as it is for a server whose clock is ahead.
func (f *fleet) shift(account string, ahead time.Duration) {
	f.t.Helper()
	const script = `local v = redis.call('GET', KEYS[1])
		local u, t, a, b = string.match(v, '^(%S+) (%d+) (%d+) (%d+)$')
		return redis.call('SET', KEYS[1], u .. ' ' .. string.format('%.0f', tonumber(t) - tonumber(ARGV[1])) .. ' ' .. a .. ' ' .. b, 'KEEPTTL')`
	if err := f.admin.Eval(context.Background(), script, []string{account}, ahead.Microseconds()).Err(); err != nil {
		f.t.Fatal(err)
	}
}

// Nodes whose host has a clock that is an hour off are nodes like any other.
func TestHostsClockAnHourOff(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		for _, limit := range []Limit{PerSecond(10), Window(10, time.Second)} {
			setup := strict(3, limit)
			setup.skew = skew
			inBubble(t, setup, func(f *fleet) {
				sleepToEdge(0)
				if got := f.everyone(10, 0, "k", 1); got != 10 {
					t.Errorf("skew %v, %v: %d of 30 admitted at once, want 10", skew, limit, got)
				}
				for range 50 { // and under load for 5 s
					f.everyone(2, 100*time.Millisecond, "k", 1)
					time.Sleep(50 * time.Millisecond)
				}
				f.checkBound(limit, 0)
				f.checkCost()
				if got := f.used("k"); got < 49 { // a window may have closed before its last came
					t.Errorf("skew %v, %v: admitted %d in 5 s of 10/s", skew, limit, got)
				}
				if r := f.ask(0, "k", 10); !r.Allowed && r.RetryAfter > 10*time.Second {
					t.Errorf("skew %v, %v: %+v", skew, limit, r)
				}
			})
		}
	}
}

// A deadline without a monotonic reading, as one that came over the network, is kept.
func TestDeadlinesOfTheWallClock(t *testing.T) {
	inBubble(t, single(PerSecond(1)), func(f *fleet) {
		l := f.lims[0]
		allow(t, l, "k", 1)
		for _, left := range []time.Duration{100 * time.Millisecond, -time.Hour} {
			soon, cancel := context.WithDeadline(ctx, time.Now().Add(left).Round(0))
			if err := l.Wait(soon, "k"); err == nil {
				t.Errorf("a wait of a second within %v: %v", left, err)
			}
			cancel()
		}
		later, cancel := context.WithDeadline(ctx, time.Now().Add(time.Hour).Round(0))
		defer cancel()
		start := time.Now()
		if err := l.Wait(later, "k"); err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("a wait of a second within an hour: %v after %v", err, time.Since(start))
		}
	})
}
