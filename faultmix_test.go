package hybrid

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestFaultMix is a fleet under load in which everything goes wrong that may:
// replies get lost before and after the store ran the call, nodes crash, leave
// and join, links break or swallow everything, round trips vary. Whatever
// happens, the bound holds and no request costs more than one operation.
func TestFaultMix(t *testing.T) {
	seeds := uint64(30)
	if raceDetector {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { faultMix(t, seed) })
	}
}

func faultMix(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	limits := []Limit{PerMinute(400), PerMinute(60), PerHour(3000), Window(100, 20*time.Second), PerSecond(8).WithBurst(20)}
	limit := limits[rng.IntN(len(limits))]
	acc := []Accuracy{Strict, Balanced, Within(0.05, 0.1), Exact}[seed%4]
	policy := []FailurePolicy{FailClosed, FailLocal}[rng.IntN(2)]
	setup := fleetSetup{nodes: 4, limit: limit, rtt: randomTrip,
		limiter: LimiterOptions{Accuracy: acc, OnFailure: policy}}
	inBubble(t, setup, func(f *fleet) {
		rate := float64(limit.Count()) / limit.Period().Seconds() * (1 + 2*rng.Float64())
		start := time.Now()
		for time.Since(start) < 150*time.Second { // leases of two epochs end in it
			f.trouble(rng, setup)
			cost := 1 + rng.Int64N(min(limit.Burst()/10, 5))
			f.load(rng, rate/float64(cost), time.Duration(rng.IntN(5000))*time.Millisecond, living, cost)
		}
		n := f.stats()
		t.Logf("%v, %v, %v: admitted %d, %d by policy; %d requests, %d operations, %d without a reply",
			limit, acc, policy, f.used("k"), n.FallbackAllowed, f.count, f.executed, n.Unknown)
		f.checkBoundOf(limit, acc.Over(), func(p Path) bool { return p != PathFallback })
		if policy == FailLocal {
			f.checkBound(limit, 1+acc.Over()) // what is admitted without the store is one more limit at most
		}
		f.checkCost()
	})
}

// living chooses a node that is there.
func living(f *fleet, rng *rand.Rand, _ time.Duration) int {
	alive := f.living()
	return alive[rng.IntN(len(alive))]
}

// trouble makes one thing go wrong, or right again.
func (f *fleet) trouble(rng *rand.Rand, setup fleetSetup) {
	way := f.links[living(f, rng, 0)]
	switch rng.IntN(8) {
	case 0, 1, 2:
		for range 1 + rng.IntN(4) {
			way.inject(fault(1 + rng.IntN(4)))
		}
	case 3:
		f.reshape(rng, setup, 2, 6)
	case 4:
		way.cut(true)
	case 5:
		way.blackHole(true)
	default: // all is well again
		for _, node := range f.living() {
			f.links[node].blackHole(false)
			f.links[node].cut(false)
		}
	}
}
