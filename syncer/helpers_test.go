package syncer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// world is one node on a fake store, in virtual time.
type world struct {
	*Syncer
	t     *testing.T
	lossy bool // what is evicted while the store is silent is lost, and the end says so
	store *fake

	mu    sync.Mutex
	turns []bool // changes of the breaker
}

// story runs a test with a node in virtual time, and ends the node: a goroutine
// that is left over fails the test.
func story(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t), nil)
		tell(t, w)
		w.end()
	})
}

// newWorld makes a node; change edits its configuration.
func newWorld(t *testing.T, store *fake, change func(*Config)) *world {
	w := &world{t: t, store: store}
	cfg := Config{
		Store: store, SyncInterval: 100 * time.Millisecond, StoreTimeout: 20 * time.Millisecond,
		Member: "me", MaxKeys: 1000, Logger: slog.New(slog.DiscardHandler),
		Changed: func(open bool, _ error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.turns = append(w.turns, open)
		},
	}
	if change != nil {
		change(&cfg)
	}
	w.Syncer = New(cfg)
	return w
}

func (w *world) end() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if !w.Begin() {
		return
	}
	if err := w.Shutdown(ctx, func() {}); err != nil && !(w.lossy && errors.Is(err, ErrUnsettled)) {
		w.t.Errorf("shutdown: %v", err)
	}
}

// breaker returns the changes of the breaker so far.
func (w *world) changes() []bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.turns)
}

var strict = Dial{Slices: true}

// bucket is the rule of a token bucket of n tokens per period.
func bucket(n int64, period time.Duration) slice.Rule {
	return slice.Rule{Burst: n, Rate: float64(n) / float64(period.Microseconds())}
}

// fixed is the rule of a fixed window.
func fixed(n int64, period time.Duration) slice.Rule {
	r := bucket(n, period)
	r.Window = period.Microseconds()
	return r
}

// limiter makes a limiter named "l".
func (w *world) limiter(rule slice.Rule, dial Dial) *Limiter {
	w.t.Helper()
	return w.add(LimiterConfig{Name: "l", Plan: NewPlan(rule, dial)})
}

func (w *world) add(cfg LimiterConfig) *Limiter {
	w.t.Helper()
	l, fresh, err := w.Add(cfg)
	if err != nil || !fresh {
		w.t.Fatalf("Add %q: fresh %t, %v", cfg.Name, fresh, err)
	}
	return l
}

// The paths by which requests are decided.
const (
	bySlice  = key.PathSlice
	byMemo   = key.PathMemo
	byFloor  = key.PathFloor
	byStore  = key.PathExact
	byPolicy = key.PathFallback
)

type path = key.Path

type answer struct {
	allowed bool
	path    path
	retry   time.Duration
}

// allow decides a request just as package hybrid does.
func allow(l *Limiter, key string, n int64) answer {
	r, err := allowCtx(context.Background(), l, key, n)
	if err != nil {
		panic(err)
	}
	return r
}

func allowCtx(ctx context.Context, l *Limiter, key string, n int64) (answer, error) {
	for {
		a := l.Account(key, key)
		if left, ok := a.Cell.Take(n, &l.s.Dead); ok {
			if a.Cell.Crossed(left, n) {
				a.Refill()
			}
			return answer{allowed: true, path: bySlice}, nil
		}
		v, ok, err := a.Decide(ctx, n, 0, l.s.Now())
		if err != nil {
			return answer{}, err
		}
		if ok {
			return answer{allowed: v.Allowed, path: v.Path, retry: v.RetryAfter}, nil
		}
	}
}

// must fails unless a request got the answer that it should.
func (w *world) must(what string, got answer, allowed bool, by path) {
	w.t.Helper()
	if got.allowed != allowed || got.path != by {
		w.t.Errorf("%s: allowed %t by %d, want %t by %d", what, got.allowed, got.path, allowed, by)
	}
}

// flood sends a request of n tokens every gap for a while, and counts who
// allowed it; what was denied counts under the path that denied it.
func flood(l *Limiter, key string, n int64, gap, span time.Duration) (allowed, denied map[path]int) {
	allowed, denied = map[path]int{}, map[path]int{}
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(gap) {
		r := allow(l, key, n)
		if r.allowed {
			allowed[r.path]++
		} else {
			denied[r.path]++
		}
	}
	return allowed, denied
}

// peek returns what is known of a key in touch with the store; nil if it is not.
func peek(l *Limiter, name string) *View {
	a, ok := l.Load(name)
	if !ok || a.active.Load() == nil {
		return nil
	}
	v, _ := a.view(l.s.Now())
	return &v
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// charge charges a key, whose account may be swept away in between.
func charge(l *Limiter, key string, n int64) {
	for !l.Account(key, key).Charge(n) {
	}
}
