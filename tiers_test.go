package hybrid

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A key's own limit may change where nothing is settled for long: on a floor, in the
// memory of a denial, with a limit of 0, with costs above the burst. The next request
// is judged by the new one all the same.
func TestATierChangesForTheNextRequest(t *testing.T) {
	const interval = 100 * time.Millisecond
	var now atomic.Pointer[Limit]
	set := func(l Limit) { now.Store(&l); time.Sleep(interval) }
	setup := fleetSetup{nodes: 1, limit: PerDay(5)}
	setup.options.SyncInterval = interval
	setup.limiter.LimitFor = func(string) (Limit, bool) { return *now.Load(), true }
	inBubble(t, setup, func(f *fleet) {
		set(PerHour(10_000))
		time.Sleep(time.Minute) // floors are earned
		l := f.lims[0]
		one := func(what string, key string, n int64, allowed bool, path Path) {
			t.Helper()
			if r := allow(t, l, key, n); r.Allowed != allowed || r.Path != path {
				t.Errorf("%s: %+v, want allowed %v by %v", what, r, allowed, path)
			}
		}
		one("a cold key", "cold", 1, true, PathFloor)
		set(PerHour(0))
		one("suspended", "cold", 1, false, PathExact)
		set(PerHour(10_000))
		one("back again", "cold", 1, true, PathFloor)
		set(PerHour(10)) // its floor is one token
		for range 20 {
			allow(t, l, "cold", 1)
		}
		one("a smaller plan", "cold", 1, false, PathMemo)
		set(PerHour(20_000))
		one("an upgrade while it is denied", "cold", 8000, true, PathExact)

		set(PerHour(100))
		one("a cost above the burst", "large", 101, false, PathExact)
		set(PerHour(200))
		one("a burst that holds it", "large", 101, true, PathExact)

		set(PerHour(10))
		for range 12 {
			allow(t, l, "both", 1)
		}
		all := []Check{{Limiter: l, Key: "both"}}
		if r, err := f.nodes[0].AllowAll(context.Background(), all...); err != nil || r.Allowed {
			t.Errorf("AllowAll of a key that is used up: %+v, %v", r, err)
		}
		set(PerHour(10_000))
		if r, err := f.nodes[0].AllowAll(context.Background(), all...); err != nil || !r.Allowed {
			t.Errorf("AllowAll after an upgrade: %+v, %v", r, err)
		}
	})
}

// However often a key is asked for, and whoever decides, LimitFor is called once per
// SyncInterval at most.
func TestLimitForIsCalledOncePerInterval(t *testing.T) {
	for _, limit := range []Limit{PerHour(0), PerHour(1), PerHour(100), PerSecond(1_000_000)} {
		var calls atomic.Int64
		setup := fleetSetup{nodes: 1, limit: PerDay(5)}
		setup.options.SyncInterval = time.Second
		setup.limiter.LimitFor = func(string) (Limit, bool) { calls.Add(1); return limit, true }
		inBubble(t, setup, func(f *fleet) {
			time.Sleep(time.Minute)
			calls.Store(0)
			for range 1000 {
				allow(t, f.lims[0], "k", 1)
				time.Sleep(20 * time.Millisecond)
			}
			if n := calls.Load(); n < 1 || n > 21 {
				t.Errorf("%v: LimitFor was called %d times in 20 s, want 1 to 21", limit, n)
			}
		})
	}
}

// Nor does it matter by which call a key is first seen.
func TestLimitForIsCalledOnceForANewKey(t *testing.T) {
	var calls atomic.Int64
	setup := fleetSetup{nodes: 1, limit: PerDay(5)}
	setup.options.SyncInterval = time.Second
	setup.limiter.LimitFor = func(string) (Limit, bool) { calls.Add(1); return PerHour(100), true }
	inBubble(t, setup, func(f *fleet) {
		l := f.lims[0]
		for what, call := range map[string]func(key string) error{
			"AllowN":   func(key string) error { _, err := l.AllowN(ctx, key, 1); return err },
			"WaitN":    func(key string) error { return l.WaitN(ctx, key, 1) },
			"AllowAll": func(key string) error { _, err := f.nodes[0].AllowAll(ctx, Check{Limiter: l, Key: key}); return err },
			"Charge":   func(key string) error { return l.Charge(key, 1) },
		} {
			for _, key := range []string{what, strings.Repeat(what, 20)} {
				calls.Store(0)
				if err := call(key); err != nil || calls.Load() != 1 {
					t.Errorf("%s of %q: %v, and LimitFor was called %d times", what, key, err, calls.Load())
				}
			}
		}
	})
}
