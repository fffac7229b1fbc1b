package hybrid

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// slow is a limit that refills nothing in a test: what the store says is used
// is what was used.
func slow(n int64) Limit { return Per(n, time.Duration(n)*1000*time.Hour) }

// Settles fail before they run and after, with the client's retries at their
// defaults. A settle that is sent again, or whose tokens are taken back though
// it ran, would double them.
func TestExactlyOnce(t *testing.T) {
	setup := strict(10, slow(1000))
	setup.limiter.OnFailure = FailClosed
	both(t, setup, func(f *fleet) { exactlyOnce(f, refused, cutBefore, cutAfter) })
	t.Run("refused", func(t *testing.T) {
		inBubble(t, setup, func(f *fleet) { exactlyOnce(f, refused) })
	})
	t.Run("swallowed", func(t *testing.T) {
		inBubble(t, setup, func(f *fleet) { exactlyOnce(f, cutBefore, swallowed) })
	})
}

// exactlyOnce lets 10 nodes ask for some 100 each of 1000, with three settles of
// each fault on the way, and closes the books.
func exactlyOnce(f *fleet, faults ...fault) {
	f.t.Helper()
	f.everyone(2, 20*time.Millisecond, "k", 1)
	for i := range 3 {
		for j, kind := range faults {
			f.links[(i+3*j)%len(f.links)].Inject(kind)
		}
		f.everyone(40, 300*time.Millisecond, "k", 1)
		f.meetFaults()
	}
	met := 0
	for _, l := range f.links {
		met += l.Hits()
	}
	if met != 3*len(faults) {
		f.t.Errorf("%d settles met a fault, want %d", met, 3*len(faults))
	}
	f.checkBound(slow(1000), 0)
	f.checkCost()
	f.leaveAll() // slices go back, but for those whose settle nobody answered
	if f.mini != nil {
		time.Sleep(2 * time.Minute) // all leases end
		if lent := f.state("k", slow(1000)).Lent; lent != 0 {
			f.t.Errorf("%d lent after two epochs", lent)
		}
	}
	f.checkBooks("k", slow(1000))
}

// meetFaults makes nodes settle that have yet to meet a fault.
func (f *fleet) meetFaults() {
	for node, l := range f.links {
		for range 10 {
			if !l.Waits() {
				break
			}
			f.ask(node, "k", 1)
			_ = f.nodes[node].Flush(context.Background()) // it fails, if the fault is met
		}
	}
}

// checkBooks fails the test unless the store's view of a key accounts for every
// admission, and for nothing else but what lost settles spoke of.
func (f *fleet) checkBooks(key string, l Limit) {
	f.t.Helper()
	admitted, used, lost := float64(f.used(key)), f.state(key, l).Used, f.tallied().lost
	f.t.Logf("admitted %v, used %v, lost at most %d", admitted, used, lost)
	const refilled = 0.5 // in the test's time, by a slow limit
	if used < admitted-refilled || used > admitted+float64(lost) {
		f.t.Errorf("%v used for %v admitted; settles without a reply spoke of %d", used, admitted, lost)
	}
}

// A slice dies with its node: until then it counts against the burst, and two
// epochs later nobody remembers it.
func TestKilledNodeLosesOnlyItsSlices(t *testing.T) {
	limit := PerMinute(1000)
	inBubble(t, strict(2, limit), func(f *fleet) {
		f.everyone(100, 5*time.Second, "k", 1)
		lent := f.state("k", limit).Lent
		f.kill(0)
		f.leave(1) // in order: what is lent now is the dead node's
		f.ending.Wait()
		killed := time.Now()
		left := f.state("k", limit).Lent
		if left < 10 || left >= lent {
			t.Errorf("the dead node's slice is %d of %d", left, lent)
			return
		}
		f.add(strict(1, limit))
		time.Sleep(30 * time.Second) // everything else drains
		if got := int64(f.exhaust("k", 1)); got != 1000-left {
			t.Errorf("%d admitted while %d are lent to the dead, want %d", got, left, 1000-left)
		}
		f.leave(2)
		f.ending.Wait()
		time.Sleep(time.Until(killed.Add(2 * time.Minute)))
		if s := f.state("k", limit); s.Lent != 0 || s.Used != 0 {
			t.Errorf("two epochs later: %+v", s)
		}
		f.add(strict(1, limit))
		if got := f.exhaust("k", 1); got != 1000 {
			t.Errorf("two epochs later: %d of the burst of 1000", got)
		}
		f.checkBound(limit, 0)
	})
}

// With a window a dead node's slice comes back with the next one.
func TestKilledNodeInAWindow(t *testing.T) {
	limit := Window(1000, time.Minute)
	inBubble(t, strict(2, limit), func(f *fleet) {
		f.everyone(100, 5*time.Second, "k", 1)
		f.kill(0)
		f.ending.Wait()
		if f.state("k", limit).Lent == 0 {
			t.Error("nothing is lent")
		}
		before := f.used("k")
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		for range 10 {
			f.everyone(150, 5*time.Second, "k", 1)
		}
		if got := f.used("k") - before; got != 1000 {
			t.Errorf("%d admitted in the next window, want 1000", got)
		}
		f.checkBound(limit, 0)
	})
}

// Round trips vary: settles and leases overtake each other.
func TestRandomRoundTrips(t *testing.T) {
	limit := PerMinute(1000)
	for _, acc := range []Accuracy{Balanced, Strict} {
		for _, where := range []place{hopping, adversarial} {
			setup := fleetSetup{nodes: 5, limit: limit, limiter: LimiterOptions{Accuracy: acc},
				options: Options{StoreTimeout: time.Second}, rtt: randomTrip}
			inBubble(t, setup, func(f *fleet) {
				f.load(rand.New(rand.NewPCG(1, 1)), 30, 125*time.Second, where, 1)
				if n := f.stats(); n.FallbackAllowed+n.FallbackDenied > 0 {
					t.Errorf("%v: the failure policy was asked", acc)
				}
				f.checkBound(limit, acc.Over())
				f.checkCost()
			})
		}
	}
}

// randomTrip is exponential, 3 ms in the mean and 15 ms at most.
func randomTrip() time.Duration {
	return min(time.Duration(rand.ExpFloat64()*float64(3*time.Millisecond)), 15*time.Millisecond)
}

// A fleet grows, shrinks and crashes. In each of its shapes one node uses up a
// fresh key, and then all the others come with what their floors hold: together
// never more than a tenth, which is on top of the limit.
func TestFleetGrowsAndShrinks(t *testing.T) {
	limit := PerMinute(1000)
	seeds := uint64(2)
	if raceDetector {
		seeds = 1
	}
	for seed := range seeds {
		setup := fleetSetup{nodes: 3, limit: limit}
		inBubble(t, setup, func(f *fleet) {
			rng := rand.New(rand.NewPCG(seed, 1))
			time.Sleep(70 * time.Second) // floors are earned
			for round := range 16 {
				key := string(rune('A' + round))
				f.reshape(rng, setup, 2, 10)
				time.Sleep(time.Duration(rng.IntN(60_000)) * time.Millisecond)
				for f.ask(f.living()[0], key, 1).Allowed {
				}
				f.everyone(60, time.Second, key, 1)
				f.everyone(60, 10*time.Second, "k", 1)
			}
			if n := f.stats().FloorAllowed; n < 500 {
				t.Errorf("only %d admissions by floors", n)
			}
			f.checkBound(limit, 0.10)
			f.checkCost()
		})
	}
}

// living lists the nodes that are there.
func (f *fleet) living() (nodes []int) {
	for node := range f.nodes {
		if !f.gone[node] {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// reshape lets a node join, leave or crash, between so many and so many.
func (f *fleet) reshape(rng *rand.Rand, setup fleetSetup, least, most int) {
	alive := f.living()
	switch n := rng.IntN(4); {
	case len(alive) < most && (n < 2 || len(alive) <= least):
		f.add(setup)
	case len(alive) <= least:
	case n == 2:
		f.leave(alive[rng.IntN(len(alive))])
	default:
		f.kill(alive[rng.IntN(len(alive))])
	}
}
