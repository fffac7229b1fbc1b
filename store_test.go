package hybrid

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

// This file is the cases of many callers at one moment, of the end of a node,
// and of a cluster.

// Many callers see the same full account before the first of them is charged.
func TestOneInstant(t *testing.T) {
	for _, acc := range exactly {
		setup := fleetSetup{nodes: 1, limit: PerHour(25), limiter: LimiterOptions{Accuracy: acc}}
		t.Run(acc.String(), func(t *testing.T) {
			both(t, setup, func(f *fleet) {
				if got := f.everyone(50, 0, "k", 1); got != 25 {
					f.t.Errorf("%d of 50 admitted at one instant, want 25", got)
				}
			})
		})
	}
}

// The callers of one key share its settles: there is one under way at a time.
func TestOneSettleAtATime(t *testing.T) {
	for _, acc := range []Accuracy{Balanced, Strict, Exact} {
		setup := fleetSetup{nodes: 1, limit: PerHour(150), limiter: LimiterOptions{Accuracy: acc},
			options: Options{StoreTimeout: time.Second}, rtt: func() time.Duration { return 5 * time.Millisecond }}
		t.Run(acc.String(), func(t *testing.T) {
			both(t, setup, func(f *fleet) {
				if got := f.everyone(200, 0, "k", 1); got != 150 {
					f.t.Errorf("%d of 200 admitted, want 150", got)
				}
				cost := f.tallied()
				if cost.most != 1 {
					f.t.Errorf("%d settles of one key were under way at once", cost.most)
				}
				if n := f.stats(); n.FallbackAllowed+n.FallbackDenied > 0 || cost.executed > 5 {
					f.t.Errorf("%d operations, %+v", cost.executed, n)
				}
			})
		})
	}
}

// oddKeys are n different keys of any bytes.
func oddKeys(n int) []string {
	rng := rand.New(rand.NewPCG(17, 17))
	keys := []string{"", " ", "\n", "\r\n", "\x00", "{", "}", "{}", "{a}", "{a}b", "a{", "\xff\xfe", "a:b", ":", "*", "$1",
		strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("{", 4096), strings.Repeat("\xff", 4096)}
	pieces := []string{"{", "}", " ", "\n", "\r", "\x00", "\xc3", "ü", ":", "#", "key"}
	for i := len(keys); i < n; i++ {
		var b strings.Builder
		fmt.Fprint(&b, i)
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		if i%1000 == 0 {
			b.WriteString(strings.Repeat(pieces[rng.IntN(len(pieces))], 4096))
		}
		keys = append(keys, b.String())
	}
	return keys
}

// Keys of any bytes on a cluster: each has an account of its own, which a
// second node finds too, and no caller hears of the cluster's ways.
func TestClusterIsLimitedAsOneServer(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	opts := &Options{StoreTimeout: 5 * time.Second}
	limiters := make([]*Limiter, 2)
	for i := range limiters {
		n, err := New(cluster.Client(t), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		if limiters[i], err = n.Limiter("api", PerHour(2), &LimiterOptions{Accuracy: Strict}); err != nil {
			t.Fatal(err)
		}
	}
	keys := oddKeys(10_000)
	var wrong atomic.Int64
	inParallel(64, keys, func(key string) {
		for i, want := range []bool{true, true, false} { // node 0, node 1, node 0
			r, err := limiters[i%2].Allow(ctx, key)
			if err != nil || r.Allowed != want || r.Path == PathFallback {
				if wrong.Add(1) < 5 {
					t.Errorf("%.40q, call %d: %+v, %v", key, i, r, err)
				}
			}
		}
	})
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d wrong answers", n)
	}
}

// Names and keys that read the same when put together are still different.
func TestNoCollision(t *testing.T) {
	onRedis(t, strict(1, PerHour(1)), func(f *fleet) {
		for _, name := range []string{"a", "a:b", "1:a", "{a}"} {
			l := f.limiterOf(name, PerHour(1), Strict)
			for _, key := range []string{"b:c", "c", "a:b:c", ":a:b:c", "}b", "b"} {
				if !allow(f.t, l, key, 1).Allowed || allow(f.t, l, key, 1).Allowed {
					f.t.Errorf("limiter %q, key %q: not one admission", name, key)
				}
			}
		}
	})
}

// inParallel calls f for each item from so many goroutines.
func inParallel[T any](workers int, items []T, f func(T)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)); i = next.Add(1) - 1 {
				f(items[i])
			}
		})
	}
	all.Wait()
}

// Nodes end under load: every call returns, every token is accounted for, and
// nothing is left running.
func TestCloseReturnsSlices(t *testing.T) {
	before := runtime.NumGoroutine()
	keys := []string{"a", "b", "c", "d", "e"}
	limit := slow(1000)
	both(t, strict(3, limit), func(f *fleet) {
		var callers sync.WaitGroup
		var asked atomic.Int64
		for node, l := range f.lims {
			for i := range 20 {
				key := keys[i%len(keys)]
				callers.Go(func() { asked.Add(f.askUntilClosed(node, l, key)) })
			}
		}
		time.Sleep(300 * time.Millisecond)
		f.leaveAll()
		callers.Wait()
		if asked.Load() < 1000 {
			f.t.Errorf("only %d calls", asked.Load())
		}
		for _, key := range keys {
			s := f.state(key, limit)
			if used := s.Used + 0.5; s.Lent != 0 || int64(used) != f.used(key) {
				f.t.Errorf("%s: %v used and %d lent of %d admitted", key, s.Used, s.Lent, f.used(key))
			}
		}
		for i, n := range f.nodes {
			if _, err := f.lims[i].Allow(ctx, "a"); !errors.Is(err, ErrClosed) {
				f.t.Errorf("a call after Close: %v", err)
			}
			if err := n.Close(); err != nil {
				f.t.Errorf("the second Close: %v", err)
			}
		}
	})
	redistest.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// askUntilClosed asks a node until it is closed, and notes what it admitted.
func (f *fleet) askUntilClosed(node int, l *Limiter, key string) (calls int64) {
	for {
		r, err := l.Allow(ctx, key)
		switch {
		case errors.Is(err, ErrClosed):
			return calls
		case err != nil:
			f.t.Errorf("Allow: %v", err)
		}
		calls++
		if r.Allowed {
			f.mu.Lock()
			f.note(node, f.account(key), 1, r.Path)
			f.mu.Unlock()
		}
		time.Sleep(time.Millisecond)
	}
}
