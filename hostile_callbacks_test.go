package hybrid

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// This file is code of users that misbehaves while the node calls it: hooks and
// LimitFor. Loggers are in logging_test.go.

// A hook that panics, never returns or takes its time costs events, and nothing
// else: no request is slower, outages go by as ever, and Close is in time.
func TestHooksThatMisbehave(t *testing.T) {
	for name, misbehave := range map[string]func(release <-chan struct{}){
		"panics":        func(<-chan struct{}) { panic("hook") },
		"panics in nil": func(<-chan struct{}) { var m map[string]int; m["x"] = 1 },
		"blocks":        func(release <-chan struct{}) { <-release },
		"is slow":       func(<-chan struct{}) { time.Sleep(30 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			var called atomic.Int64
			release := make(chan struct{})
			setup := strict(1, PerSecond(1000))
			setup.options.Hooks.Store = func(StoreEvent) { called.Add(1); misbehave(release) }
			var changes uint64
			inBubble(t, setup, func(f *fleet) {
				release = make(chan struct{}) // of the bubble
				for range 50 {
					f.flap()
				}
				st := f.nodes[0].Stats()
				changes = st.StoreDowns*2 - st.HooksDropped
				if st.StoreDowns < 50 || st.StoreDown {
					t.Errorf("%d outages seen of 50, and down now: %t", st.StoreDowns, st.StoreDown)
				}
				start := time.Now()
				f.leaveAll()
				if took := time.Since(start); took > closeTimeout {
					t.Errorf("Close took %v", took)
				}
				close(release)
				time.Sleep(time.Hour) // the hooks end, and with it the bubble
			})
			if n := uint64(called.Load()); name[:6] == "panics" && n != changes || n == 0 {
				t.Errorf("called %d times for %d events", n, changes)
			}
		})
	}
}

// flap takes the store away and brings it back, while requests come.
func (f *fleet) flap() {
	for _, down := range []bool{true, false} {
		f.links[0].Cut(down)
		for i := 0; i < 2000 && f.nodes[0].Stats().StoreDown != down; i++ {
			start := time.Now()
			r := f.ask(0, fmt.Sprint("key ", i%7), 2000/10)
			if took := time.Since(start); took > 20*time.Millisecond {
				f.t.Errorf("a call took %v: %+v", took, r)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// What LimitFor gives is a valid limit or is counted, and never an error, a
// panic or a wrong limit of a caller.
func TestLimitForThatMisbehaves(t *testing.T) {
	nonsense := []Limit{{}, PerSecond(-1), PerSecond(math.MinInt64), PerSecond(math.MaxInt64), Per(1, -1), Per(1, 0), Per(1, 1),
		Per(1, math.MaxInt64), PerSecond(5).WithBurst(0), PerSecond(5).WithBurst(-1), Window(5, time.Second).WithBurst(6), Per(1, time.Second+1)}
	for name, limitFor := range map[string]func(calls int64) (Limit, bool){
		"panics":       func(int64) (Limit, bool) { panic("tier") },
		"panics nil":   func(int64) (Limit, bool) { var l *Limiter; return l.Limit("x"), true },
		"nonsense":     func(n int64) (Limit, bool) { return nonsense[n%int64(len(nonsense))], true },
		"half a panic": func(n int64) (Limit, bool) { return PerHour(3), map[bool]bool{}[n%2 == 0] || fail(n) },
	} {
		var calls atomic.Int64
		setup := strict(2, PerHour(7))
		setup.limiter.LimitFor = func(string) (Limit, bool) { return limitFor(calls.Add(1)) }
		t.Run(name, func(t *testing.T) {
			both(t, setup, func(f *fleet) {
				for i := range 40 {
					key := fmt.Sprint("key ", i)
					if n := f.exhaust(key, 1); n != 7 {
						f.t.Errorf("%d admitted, the limiter's own limit is 7", n)
					}
					if l := f.lims[0].Limit(key); l != PerHour(7) {
						f.t.Errorf("its limit is said to be %v", l)
					}
				}
				if st := f.stats(); st.InvalidTiers == 0 || st.FallbackAllowed+st.FallbackDenied > 0 {
					f.t.Errorf("%+v", st)
				}
			})
		})
	}
}

func fail(n int64) bool {
	if n%3 == 0 {
		panic(n)
	}
	return false
}

// A LimitFor that changes its mind each time: the bound of the largest holds,
// and somebody is admitted.
func TestLimitForThatChangesItsMind(t *testing.T) {
	limits := []Limit{PerMinute(60), PerMinute(120), PerMinute(30).WithBurst(5), PerMinute(1), PerMinute(100).WithBurst(120), PerSecond(0), {}}
	setup := strict(3, PerMinute(90))
	rng := rand.New(rand.NewPCG(1, 1))
	var mu sync.Mutex
	setup.limiter.LimitFor = func(string) (Limit, bool) {
		mu.Lock()
		defer mu.Unlock()
		return limits[rng.IntN(len(limits))], rng.IntN(5) > 0
	}
	inBubble(t, setup, func(f *fleet) {
		for range 1500 {
			f.ask(int(time.Now().UnixMilli())%3, "k", 1)
			time.Sleep(100 * time.Millisecond)
		}
		f.checkBound(PerMinute(120), 0)
		if n := f.used("k"); n < 60 {
			t.Errorf("%d admitted in 150 s of some 60 per minute", n)
		}
	})
}

// A LimitFor of 50 ms makes its own limiter's new keys wait, and settles that go
// with them, and every call is back after its own LimitFor and StoreTimeout. Who waits for
// a LimitFor does not wait for the store, and does not make the node give it up.
func TestLimitForThatIsSlow(t *testing.T) {
	inBubble(t, strict(1, PerSecond(1000)), func(f *fleet) {
		f.slowTiers(50 * time.Millisecond)
		if n := f.nodes[0].Stats().StoreDowns; n > 0 {
			t.Errorf("the store was given up %d times", n)
		}
	})
}

// slowTiers asks a limiter whose LimitFor takes so long, and another one beside it.
func (f *fleet) slowTiers(slowness time.Duration) {
	slowly := func(string) (Limit, bool) { time.Sleep(slowness); return PerSecond(50), true }
	tiered, err := f.nodes[0].Limiter("tiered", PerSecond(100), &LimiterOptions{Accuracy: Strict, LimitFor: slowly})
	if err != nil {
		f.t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			start := time.Now()
			if _, err := tiered.Allow(ctx, fmt.Sprint("key ", i%40)); err != nil {
				f.t.Error(err)
			}
			if took := time.Since(start); took > slowness+20*time.Millisecond {
				f.t.Errorf("a tiered call took %v", took)
			}
		})
		all.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			start := time.Now()
			r := f.ask(0, "k", 1)
			if took := time.Since(start); took > 20*time.Millisecond {
				f.t.Errorf("a call of another limiter took %v: %+v", took, r)
			}
		})
	}
	all.Wait()
}

// A LimitFor may use the node that calls it.
func TestLimitForThatCallsBack(t *testing.T) {
	both(t, strict(1, PerSecond(1000)), func(f *fleet) {
		var tiered *Limiter
		n := f.nodes[0]
		callBack := func(key string) (Limit, bool) {
			if len(key) > 20 {
				return Limit{}, false
			}
			deeper := key + "'"
			allow(f.t, f.lims[0], deeper, 1)
			allow(f.t, tiered, deeper, 1)
			n.Stats()
			for _, err := range []error{tiered.Charge(deeper, 1), tiered.Refund(deeper, 1), f.lims[0].SetLimit(PerSecond(1000))} {
				if err != nil {
					f.t.Error(err)
				}
			}
			return PerHour(9), true
		}
		var err error
		if tiered, err = n.Limiter("tiered", PerHour(5), &LimiterOptions{Accuracy: Strict, LimitFor: callBack}); err != nil {
			f.t.Fatal(err)
		}
		admitted := 0
		for range 15 {
			if allow(f.t, tiered, "a key of 16 byte", 1).Allowed {
				admitted++
			}
		}
		if admitted != 9 {
			f.t.Errorf("%d admitted, the key's own limit is 9", admitted)
		}
	})
}
