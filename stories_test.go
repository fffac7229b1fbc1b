package hybrid

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"
)

// The cases are what went wrong in other limiters, each reduced to its smallest
// input. The number in a test's name is the case's; see docs/accuracy.md.

var ctx = context.Background()

// A limiter that counts after the fact lets every node spend the whole limit
// before the first report arrives.
func TestMidWindowBurst(t *testing.T) {
	limit := PerMinute(162_000)
	t.Run("Strict", func(t *testing.T) {
		inBubble(t, strict(10, limit), func(f *fleet) {
			got := f.everyone(200, 100*time.Millisecond, "k", 1500)
			got += f.exhaust("k", 1500)
			if got != 108 {
				t.Errorf("admitted %d, want 108", got)
			}
			f.checkBound(limit, 0)
			f.checkCost()
		})
	})
	t.Run("Balanced", func(t *testing.T) {
		inBubble(t, fleetSetup{nodes: 10, limit: limit}, func(f *fleet) {
			time.Sleep(70 * time.Second) // floors are earned
			got := f.everyone(200, 100*time.Millisecond, "k", 1500)
			if got < 108 || got > 118 {
				t.Errorf("admitted %d, want 108 to ⌊1.1·108⌋", got)
			}
			f.checkBound(limit, 0.10)
			f.checkCost()
		})
	})
}

// limiterOf makes one more limiter on the first node.
func (f *fleet) limiterOf(name string, limit Limit, acc Accuracy) *Limiter {
	f.t.Helper()
	l, err := f.nodes[0].Limiter(name, limit, &LimiterOptions{Accuracy: acc})
	if err != nil {
		f.t.Fatal(err)
	}
	return l
}

// allow asks and expects no error.
func allow(t *testing.T, l *Limiter, key string, cost int64) Result {
	t.Helper()
	r, err := l.AllowN(ctx, key, cost)
	if err != nil {
		t.Errorf("AllowN(%d): %v", cost, err)
	}
	return r
}

// admittedOf asks so often, one after the other, and counts.
func admittedOf(t *testing.T, l *Limiter, key string, calls int, cost int64) (n int) {
	t.Helper()
	for range calls {
		if allow(t, l, key, cost).Allowed {
			n++
		}
	}
	return n
}

// exactly lists the accuracies that never admit more than the limit.
var exactly = []Accuracy{Strict, Exact}

func TestDegenerateLimits(t *testing.T) {
	inBubble(t, strict(1, PerSecond(10)), func(f *fleet) {
		for _, acc := range []Accuracy{Balanced, Strict, Exact} {
			none := f.limiterOf("none "+acc.String(), PerSecond(0), acc)
			if r := allow(t, none, "k", 1); r.Allowed || r.RetryAfter != Never {
				t.Errorf("%v: limit 0: %+v", acc, r)
			}
			ten := f.limiterOf("ten "+acc.String(), PerSecond(10), acc)
			if r := allow(t, ten, "k", 11); r.Allowed || r.RetryAfter != Never {
				t.Errorf("%v: cost 11 of burst 10: %+v", acc, r)
			}
			start := time.Now()
			if err := ten.WaitN(ctx, "k", 11); !errors.Is(err, ErrExceedsBurst) || time.Since(start) != 0 {
				t.Errorf("%v: WaitN: %v after %v, want ErrExceedsBurst at once", acc, err, time.Since(start))
			}
			if _, err := ten.AllowN(ctx, "k", -5); !errors.Is(err, ErrInvalidCost) {
				t.Errorf("%v: cost -5: %v", acc, err)
			}
		}
		for _, acc := range exactly {
			ten := f.limiterOf("zero "+acc.String(), PerHour(10), acc)
			admittedOf(t, ten, "k", 20, 0)
			if got := admittedOf(t, ten, "k", 20, 1); got != 10 {
				t.Errorf("%v: after 20 of cost 0, %d admitted, want 10", acc, got)
			}
			four := f.limiterOf("four "+acc.String(), PerSecond(10).WithBurst(4), acc)
			if got := atOnce(t, four, "k", 20); got != 4 {
				t.Errorf("%v: %d of burst 4 at once", acc, got)
			}
		}
	})
}

// atOnce asks from so many goroutines at one instant, and counts.
func atOnce(t *testing.T, l *Limiter, key string, callers int) (n int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range callers {
		all.Go(func() {
			if allow(t, l, key, 1).Allowed {
				mu.Lock()
				defer mu.Unlock()
				n++
			}
		})
	}
	all.Wait()
	return n
}

// A period below the store's millisecond of TTL, and one whose tokens do not
// divide it.
func TestOddPeriods(t *testing.T) {
	for _, acc := range exactly {
		half := Per(1, 500*time.Microsecond)
		inBubble(t, fleetSetup{nodes: 1, limit: half, limiter: LimiterOptions{Accuracy: acc}}, func(f *fleet) {
			if !f.ask(0, "k", 1).Allowed {
				t.Errorf("%v: %v does not admit its first", acc, half)
			}
			if ttl := f.mini.TTL(f.account("k")); ttl <= 0 { // in ms, it would be 0
				t.Errorf("%v: the account's TTL is %v", acc, ttl)
			}
			time.Sleep(time.Millisecond)
			if !f.ask(0, "k", 1).Allowed {
				t.Errorf("%v: %v does not admit again after two periods", acc, half)
			}
		})
		three := PerSecond(3)
		inBubble(t, fleetSetup{nodes: 1, limit: three, limiter: LimiterOptions{Accuracy: acc}}, func(f *fleet) {
			got := 0
			for range 600 {
				if f.ask(0, "k", 1).Allowed {
					got++
				}
				time.Sleep(100 * time.Millisecond)
			}
			if got < 182 || got > 184 {
				t.Errorf("%v: 3/s for 60 s: admitted %d, want 180 ± 1 and the burst", acc, got)
			}
			f.checkBound(three, 0)
		})
	}
}

func TestDenialIsFree(t *testing.T) {
	for _, acc := range exactly {
		for _, nodes := range []int{1, 3} {
			setup := fleetSetup{nodes: nodes, limit: PerHour(10), limiter: LimiterOptions{Accuracy: acc}}
			inBubble(t, setup, func(f *fleet) {
				if got := f.everyone(60/nodes, time.Second, "k", 1); got != 10 {
					t.Errorf("%v, %d nodes: %d admitted of 10/h", acc, nodes, got)
				}
				for _, l := range f.lims {
					if err := l.SetLimit(PerHour(20)); err != nil {
						t.Error(err)
					}
				}
				if got := f.everyone(60/nodes, time.Second, "k", 1); got != 10 {
					t.Errorf("%v, %d nodes: %d more admitted of 20/h, want 10", acc, nodes, got)
				}
			})
			inBubble(t, setup, func(f *fleet) {
				left := func() int64 {
					t.Helper()
					f.flush()
					r, err := f.lims[0].Peek(ctx, "k")
					if err != nil {
						t.Error(err)
					}
					return r.Remaining
				}
				f.ask(0, "k", 8)
				if r := f.ask(nodes-1, "k", 5); r.Allowed || left() != 2 {
					t.Errorf("%v, %d nodes: cost 5 with 2 left: %+v, %d left", acc, nodes, r, left())
				}
				if r := f.ask(nodes-1, "k", 2); !r.Allowed || left() != 0 {
					t.Errorf("%v, %d nodes: cost 2 with 2 left: %+v, %d left", acc, nodes, r, left())
				}
			})
		}
	}
}

// The first of many callers goes away. Were the settle bound to its context,
// all of them would fail with it.
func TestCancelledLeader(t *testing.T) {
	for _, acc := range []Accuracy{Balanced, Strict, Exact} {
		inBubble(t, fleetSetup{nodes: 1, limit: PerHour(1000),
			limiter: LimiterOptions{Accuracy: acc}, options: Options{StoreTimeout: time.Second},
			rtt: func() time.Duration { return 20 * time.Millisecond },
		}, func(f *fleet) {
			time.Sleep(time.Second) // connections are made
			leader, cancel := context.WithCancel(ctx)
			var all sync.WaitGroup
			all.Go(func() {
				r, err := f.lims[0].Allow(leader, "k")
				if !errors.Is(err, context.Canceled) || r != (Result{}) {
					t.Errorf("%v: the leader: %+v, %v", acc, r, err)
				}
			})
			time.Sleep(time.Millisecond)
			for range 99 {
				all.Go(func() {
					if r := f.ask(0, "k", 1); !r.Allowed || r.Path == PathFallback {
						t.Errorf("%v: a follower: %+v", acc, r)
					}
				})
			}
			time.Sleep(4 * time.Millisecond)
			cancel()
			all.Wait()
			f.leaveAll() // slices are back
			// The leader's token may be charged: its settle was under way. No other may.
			if used := f.state("k", PerHour(1000)).Used; used > 100 {
				t.Errorf("%v: %v used by 99 admissions", acc, used)
			}
		})
	}
}

// seconds is RetryAfter as HTTP says it.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

func TestRetryAfter(t *testing.T) {
	minute := Window(5, time.Minute)
	for _, acc := range exactly {
		inBubble(t, fleetSetup{nodes: 2, limit: minute, limiter: LimiterOptions{Accuracy: acc}}, func(f *fleet) {
			time.Sleep(59 * time.Second) // the bubble begins at a full minute
			// All by one node: another that had as much demand might be first in the
			// next window, and take for all of it.
			for i := range 5 {
				if r := f.ask(1, "k", 1); !r.Allowed {
					t.Errorf("%v: request %d of 5: %+v", acc, i+1, r)
				}
			}
			for node := range f.nodes {
				if r := f.ask(node, "k", 1); seconds(r.RetryAfter) != 1 {
					t.Errorf("%v: 59 s into the minute: RetryAfter %v", acc, r.RetryAfter)
				}
			}
			r := f.ask(1, "k", 1)
			time.Sleep(r.RetryAfter)
			if r := f.ask(1, "k", 1); !r.Allowed {
				t.Errorf("%v: denied again after RetryAfter: %+v", acc, r)
			}
		})
	}
}

// A denial says when to come back, and that is true: also for costs that take
// several refills, and for a node that was not the one to use the limit up.
func TestRetryIsKept(t *testing.T) {
	limits := []Limit{PerSecond(1), PerSecond(7), PerSecond(1000), PerMinute(5), PerMinute(1000),
		Per(3, 7*time.Millisecond), PerSecond(100).WithBurst(10), Window(100, time.Second), Window(20, time.Minute)}
	for _, acc := range []Accuracy{Balanced, Strict, Exact} {
		for _, limit := range limits {
			for _, cost := range []int64{1, limit.Burst()/2 + 1} {
				setup := fleetSetup{nodes: 2, limit: limit, limiter: LimiterOptions{Accuracy: acc}}
				inBubble(t, setup, func(f *fleet) {
					f.ask(0, "k", limit.Burst())
					r := f.ask(1, "k", cost)
					for r.Allowed { // short periods refill during the round trip
						r = f.ask(1, "k", cost)
					}
					if r.RetryAfter <= 0 || r.RetryAfter == Never {
						t.Errorf("%v %v cost %d: RetryAfter %v", acc, limit, cost, r.RetryAfter)
						return
					}
					time.Sleep(r.RetryAfter)
					if again := f.ask(1, "k", cost); !again.Allowed {
						t.Errorf("%v %v cost %d: denied again after %v: %+v", acc, limit, cost, r.RetryAfter, again)
					}
				})
			}
		}
	}
}
