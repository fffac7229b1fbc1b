package syncer

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// traffic is a random story of two nodes and a few keys.
type traffic struct {
	rule      slice.Rule
	dial      Dial
	policy    Policy
	latency   time.Duration
	faults    float64 // part of the settles that end badly
	gap       time.Duration
	span      time.Duration
	costs     int64
	parallel  int
	seed      uint64
	setPlan   bool
	charges   bool
	storeGone bool // for a third of the time
}

func someTraffic(t *rapid.T) traffic {
	period := time.Duration(rapid.SampledFrom([]int{50, 1000, 10_000, 60_000, 3_600_000}).Draw(t, "period ms")) * time.Millisecond
	tr := traffic{
		rule:      bucket(rapid.SampledFrom([]int64{1, 3, 20, 100, 1000, 100_000}).Draw(t, "burst"), period),
		dial:      rapid.SampledFrom([]Dial{exactly, strict, {Over: 0.1, Slices: true}, {Over: 0.1, Under: 0.2, Slices: true}}).Draw(t, "dial"),
		policy:    rapid.SampledFrom([]Policy{key.FailLocal, key.FailOpen, key.FailClosed}).Draw(t, "policy"),
		latency:   time.Duration(rapid.SampledFrom([]int{0, 500, 5000, 30_000}).Draw(t, "latency µs")) * time.Microsecond,
		faults:    rapid.SampledFrom([]float64{0, 0, 0.05, 0.5}).Draw(t, "faults"),
		costs:     rapid.SampledFrom([]int64{1, 1, 2, 10}).Draw(t, "costs"),
		parallel:  rapid.IntRange(1, 4).Draw(t, "parallel"),
		seed:      rapid.Uint64().Draw(t, "seed"),
		setPlan:   rapid.Bool().Draw(t, "set plan"),
		charges:   rapid.Bool().Draw(t, "charges"),
		storeGone: rapid.IntRange(0, 3).Draw(t, "gone") == 0,
	}
	if rapid.Bool().Draw(t, "window") && period >= time.Second {
		tr.rule.Window = period.Microseconds()
	}
	tr.gap = time.Duration(rapid.SampledFrom([]int{300, 3000, 40_000, 700_000}).Draw(t, "gap µs")) * time.Microsecond
	tr.span = min(200*tr.gap, 2*time.Minute)
	return tr
}

// outcome is what traffic came to, by key.
type outcome struct {
	requests, operations map[string]int
	problems             []string
}

// run lets the traffic pass. Every call of a user that can cost an operation
// counts as a request.
func (tr traffic) run(t *testing.T) (o outcome) {
	o = outcome{requests: map[string]int{}, operations: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		store := newFake(t)
		store.shared = true
		nodes := []*world{newWorld(t, store, nil), newWorld(t, store, func(c *Config) { c.Member = "you"; c.MaxKeys = 2 })}
		store.slow(tr.latency)
		tr.inject(store)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, w := range nodes {
			w.lossy = true
			l := w.add(LimiterConfig{Name: "l", Plan: NewPlan(tr.rule, tr.dial), Policy: tr.policy})
			for j := range tr.parallel {
				random := rand.New(rand.NewPCG(tr.seed, uint64(10*i+j)))
				wg.Go(func() {
					for end := time.Now().Add(tr.span); time.Now().Before(end); {
						key := string('a' + rune(random.IntN(3)))
						mu.Lock()
						o.requests[key]++
						mu.Unlock()
						tr.act(l, key, random)
						time.Sleep(time.Duration(random.ExpFloat64() * float64(tr.gap)))
					}
				})
			}
		}
		wg.Wait()
		store.fail(slice.Ran)
		time.Sleep(3 * time.Minute)
		for _, w := range nodes {
			// A denial, or a debt of the fallback bucket, may last for the
			// time that the limit takes to fill.
			if n := w.timers.len(); n > 0 && float64(tr.rule.Burst)/tr.rule.Rate <= 60e6 {
				o.problems = append(o.problems, "an account never leaves the timer queue")
			}
		}
		for key := range o.requests {
			o.operations[key] = store.opsOf("l/" + key)
		}
		for _, w := range nodes {
			w.end()
		}
	})
	return o
}

func (tr traffic) act(l *Limiter, key string, random *rand.Rand) {
	n := 1 + random.Int64N(tr.costs)
	switch {
	case tr.charges && random.IntN(8) == 0:
		l.Account(key, key).Charge(n)
	case tr.charges && random.IntN(8) == 0:
		l.Account(key, key).Refund(n)
	case tr.setPlan && random.IntN(100) == 0:
		l.SetPlan(NewPlan(tr.rule, tr.dial))
	default:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random.IntN(50))*time.Millisecond)
		defer cancel()
		allowCtx(ctx, l, key, n)
	}
}

func (tr traffic) inject(store *fake) {
	random := rand.New(rand.NewPCG(tr.seed, 99))
	start := time.Now()
	gone := func() bool {
		return tr.storeGone && time.Since(start) > tr.span/3 && time.Since(start) < 2*tr.span/3
	}
	var mu sync.Mutex
	store.onSettle(func(*slice.Settle) (slice.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case gone():
			return slice.NotRun, errGone
		case random.Float64() >= tr.faults:
			return slice.Ran, nil
		case random.IntN(2) == 0:
			return slice.NotRun, errGone
		}
		return slice.Unknown, errGone
	})
	store.set(func() {
		store.beat = func() error {
			if gone() {
				return errGone
			}
			return nil
		}
	})
}

// Whatever the traffic, the limit and the faults: the store never executes more
// operations on an account than there were requests for it, and in the end the
// nodes have nothing left to do.
func TestOperationsNeverExceedRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tr := someTraffic(rt)
		o := tr.run(t)
		for key, n := range o.requests {
			if o.operations[key] > n {
				rt.Fatalf("%d operations for %d requests of %q: %+v", o.operations[key], n, key, tr)
			}
		}
		for _, p := range o.problems {
			rt.Fatalf("%s: %+v", p, tr)
		}
	})
}
