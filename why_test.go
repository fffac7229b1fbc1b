package hybrid

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Why is derived from what is inspected, and must be what then happens: whatever a key
// has been through, the next request is decided as foreseen.
func TestWhyIsTrue(t *testing.T) {
	seeds, seen := uint64(12), &foreseen{count: map[string]int{}}
	switch {
	case *full:
		seeds = 500
	case raceDetector || testing.Short():
		seeds = 5
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 8))
		setup, limits := anySetup(rng)
		inBubble(t, setup, func(f *fleet) {
			for range 120 {
				f.anything(rng, limits)
				time.Sleep(time.Duration(1 + rng.Int64N(int64(3*time.Millisecond)))) // nothing ends at just this moment
				key := anyKeyOf(rng)
				v, err := f.lims[0].look(ctx, key)
				if err != nil {
					t.Error(err)
				}
				seen.check(t, seed, &v, allow(t, f.lims[0], key, 1))
			}
			f.links[0].Cut(false)
			time.Sleep(3 * time.Second)
		})
	}
	seen.report(t)
}

// foreseen counts what was foreseen of all requests.
type foreseen struct {
	count map[string]int
	sure  int
	all   int
}

// check compares a request with what was said of it.
func (c *foreseen) check(t *testing.T, seed uint64, v *view, r Result) {
	t.Helper()
	f, s := v.foresee(), &v.state
	decided := r.Allowed && !r.Shadowed
	c.all++
	if f.known {
		c.sure++
		c.count[fmt.Sprint(r.Path, " ", decided)]++
	}
	if f.known && (f.path != r.Path || f.allowed != decided) {
		t.Errorf("seed %d: %s\nand then %+v\nof %+v, %+v", seed, s.Why, r, *s, s.Store)
	}
	verdict, _, _ := strings.Cut(s.Why, ":")
	want := map[bool]string{true: "Allowed", false: "Denied"}[f.allowed]
	switch {
	case !f.known:
		want = "Undecided"
	case v.shadow && !f.allowed:
		want = "Denied, and let through in shadow mode"
	}
	if why := s.Why; verdict != want || !strings.HasSuffix(why, ".") || strings.Count(why, ". ") > 0 {
		t.Errorf("%q does not say %q", why, want)
	}
}

// report fails if the run was none: every way to decide must have been foreseen.
func (c *foreseen) report(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d foreseen: %v", c.sure, c.all, c.count)
	for _, way := range []string{
		"slice true", "floor true", "memo false", "exact true", "exact false", "fallback true", "fallback false",
	} {
		if c.count[way] < 3 {
			t.Errorf("%s was foreseen %d times", way, c.count[way])
		}
	}
	if c.sure < c.all*8/10 {
		t.Errorf("only %d of %d were foreseen", c.sure, c.all)
	}
}

// anySetup is a fleet of one or two nodes under any limit, and limits that it may
// change to.
func anySetup(rng *rand.Rand) (fleetSetup, []Limit) {
	limits := []Limit{
		PerHour(10), PerSecond(5), PerMinute(600), Window(20, 10*time.Second), PerSecond(1000), Window(5000, time.Minute),
		PerMinute(100).WithBurst(7), PerDay(1000), PerSecond(0),
	}
	accuracies := []Accuracy{Balanced, Balanced, Strict, Exact, Within(0.05, 0.10)}
	setup := fleetSetup{nodes: 1 + rng.IntN(2), limit: limits[rng.IntN(len(limits)-1)]}
	setup.limiter.Accuracy = accuracies[rng.IntN(len(accuracies))]
	setup.limiter.OnFailure = FailurePolicy(rng.IntN(3))
	setup.limiter.Shadow = rng.IntN(8) == 0
	setup.options.Servers = rng.IntN(4)
	if rng.IntN(3) == 0 {
		setup.limiter.LimitFor = func(key string) (Limit, bool) {
			n := int(time.Now().Unix()/20) + len(key)
			return limits[n%len(limits)], n%3 > 0
		}
	}
	return setup, limits
}

// anyKeyOf is a key in use, now and then a new one.
func anyKeyOf(rng *rand.Rand) string {
	if rng.IntN(10) == 0 {
		return fmt.Sprint("new ", rng.IntN(1000))
	}
	return fmt.Sprint("k", rng.IntN(3))
}

// anything lets something happen to the keys of a fleet.
func (f *fleet) anything(rng *rand.Rand, limits []Limit) {
	key, l := fmt.Sprint("k", rng.IntN(3)), f.lims[rng.IntN(len(f.lims))]
	check := func(err error) {
		if err != nil && f.links[0].Sound() {
			f.t.Error(err)
		}
	}
	switch rng.IntN(16) {
	case 0, 1, 2, 3, 4:
		for range rng.IntN(40) {
			allow(f.t, l, key, 1+rng.Int64N(2))
			time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
		}
	case 5, 6, 7:
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(2*time.Second)))
	case 8:
		time.Sleep(time.Duration(rng.Int64N(int64(10 * time.Second))))
		if rng.IntN(4) == 0 {
			time.Sleep(2 * time.Minute) // a lease ends
		}
	case 9:
		check(l.Charge(key, 1+rng.Int64N(5)))
	case 10:
		check(l.Refund(key, 1+rng.Int64N(5)))
	case 11:
		check(l.Reset(ctx, key))
	case 12:
		check(l.SetLimit(limits[rng.IntN(len(limits))]))
	case 13:
		f.links[0].Inject([]fault{refused, cutBefore, cutAfter, swallowed}[rng.IntN(4)])
	case 14:
		f.links[0].Cut(true)
		for range rng.IntN(60) {
			allow(f.t, f.lims[0], key, 1)
			time.Sleep(5 * time.Millisecond)
		}
	case 15:
		f.links[0].Cut(false)
		time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
	}
}
