package syncer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Every token that was granted is used, given back or lost, whatever goes wrong: the
// four counts add up when nothing is held any more.
func TestWhereTokensWent(t *testing.T) {
	var total struct{ used, returned, expired, dropped uint64 }
	seeds := uint64(15)
	if raceEnabled {
		seeds = 8
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 21))
			store := newFake(t)
			store.shared = true // a key that is evicted and comes again has two accounts for a while
			w := newWorld(t, store, func(c *Config) { c.MaxKeys = 3 + rng.IntN(5) })
			w.lossy = true
			rules := []slice.Rule{bucket(600, time.Minute), bucket(60_000, time.Minute), fixed(3000, 30*time.Second)}
			rule := rules[rng.IntN(len(rules))]
			l := w.limiter(rule, strict)
			for range 60 {
				w.mishap(rng, l, rule)
				flood(l, fmt.Sprint("k", rng.IntN(10)), 1+rng.Int64N(3), time.Duration(1+rng.IntN(20))*time.Millisecond, time.Second)
			}
			w.store.fail(slice.Ran)
			time.Sleep(5 * time.Minute) // what is held lapses
			if rng.IntN(2) == 0 {
				w.end()
			}
			l.s.Collect()
			c := &l.Counts
			granted, used, returned, expired := c.Granted.Load(), c.SliceTokens.Load(), c.Returned.Load(), c.Expired.Load()
			if granted != used+returned+expired {
				t.Errorf("seed %d: granted %d, used %d, returned %d, expired %d: %d too few",
					seed, granted, used, returned, expired, int64(granted)-int64(used+returned+expired))
			}
			total.used += used
			total.returned += returned
			total.expired += expired
			total.dropped += c.Dropped.Load()
			w.end()
		})
	}
	t.Logf("%+v", total)
	if total.used == 0 || total.returned == 0 || total.expired == 0 || total.dropped == 0 {
		t.Errorf("the runs are none: %+v", total)
	}
}

// mishap lets something happen to a node that has to do with its slices.
func (w *world) mishap(rng *rand.Rand, l *Limiter, rule slice.Rule) {
	switch rng.IntN(8) {
	case 0:
		w.store.fail(slice.Unknown) // executed, and the reply lost
	case 1:
		w.store.fail(slice.NotRun)
	case 2, 3:
		w.store.fail(slice.Ran)
	case 4:
		time.Sleep(time.Duration(rng.IntN(200)) * time.Second)
	case 5:
		w.store.Store.Lose()
	case 6:
		lower := rule
		lower.Burst = max(rule.Burst/int64(1+rng.IntN(4)), 1)
		l.SetPlan(NewPlan(lower, strict))
	case 7:
		charge(l, "k1", 1+rng.Int64N(20))
	}
}
