package hybrid

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWaitersAreWoken(t *testing.T) {
	inBubble(t, single(PerHour(1)), func(f *fleet) {
		l, ctx := f.lims[0], context.Background()
		closing := f.limiterOf("closing", PerHour(1), Strict)
		for _, lim := range []*Limiter{l, closing} {
			allow(t, lim, "k", 1)
		}
		results := make(chan error, 3)
		for range 2 {
			go func() { results <- closing.Wait(ctx, "k") }()
		}
		time.Sleep(time.Second)
		if err := closing.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-results; !errors.Is(err, ErrClosed) {
				t.Errorf("Wait on a limiter that closed: %v", err)
			}
		}
		go func() { results <- l.Wait(ctx, "k") }()
		time.Sleep(time.Second)
		start := time.Now()
		if err := l.SetLimit(PerSecond(1000)); err != nil {
			t.Error(err)
		}
		if err := <-results; err != nil || time.Since(start) > time.Minute {
			t.Errorf("Wait under a limit that was raised: %v after %v", err, time.Since(start))
		}
	})
}

func TestShadowNeverHoldsUp(t *testing.T) {
	setup := single(PerSecond(10))
	setup.limiter.Shadow = true
	inBubble(t, setup, func(f *fleet) {
		if err := f.lims[0].WaitN(context.Background(), "k", 100); err != nil {
			t.Errorf("WaitN of more than the burst in shadow mode: %v", err)
		}
		if err := f.limiterOf("never", PerSecond(0), Strict).WaitN(context.Background(), "k", 1); !errors.Is(err, ErrExceedsBurst) {
			t.Errorf("WaitN under a limit of 0: %v", err)
		}
	})
}

func TestHugeChargesLeaveTheKeyUsable(t *testing.T) {
	inBubble(t, single(PerSecond(10)), func(f *fleet) {
		l := f.lims[0]
		for range 3 {
			if err := l.Charge("up", 1<<53); err != nil {
				t.Error(err)
			}
			if err := l.Refund("down", 1<<53); err != nil {
				t.Error(err)
			}
		}
		for key, want := range map[string]bool{"up": false, "down": true} {
			if r := allow(t, l, key, 1); r.Allowed != want || r.Path != PathExact {
				t.Errorf("%s: %+v", key, r)
			}
		}
		time.Sleep(2 * time.Second)
		if r := allow(t, l, "up", 1); !r.Allowed {
			t.Errorf("a debt of one burst has drained, but %+v", r)
		}
	})
}

// A denial of AllowAll costs no more operations than its checks, put-back and all.
func TestAllowAllPaysForItself(t *testing.T) {
	inBubble(t, single(PerHour(100)), func(f *fleet) {
		ctx := context.Background()
		a, b := f.limiterOf("a", PerHour(1000), Exact), f.limiterOf("b", PerHour(1), Exact)
		const calls = 40
		for i := range calls {
			if _, err := f.nodes[0].AllowAll(ctx, Check{a, "k", 1}, Check{b, "k", 1}); err != nil {
				t.Error(err)
			}
			if i%4 == 3 {
				time.Sleep(20 * time.Second) // denials from memory end
			}
		}
		if ops := f.stats().Operations; ops > 2*calls {
			t.Errorf("%d operations for %d checks", ops, 2*calls)
		}
		if r, err := a.Peek(ctx, "k"); err != nil || r.Remaining < 998 {
			t.Errorf("the first limit: %+v, %v; want all but what passed put back", r, err)
		}
	})
}

// A node whose tick is longer than the life of a registration stays registered.
func TestSlowTicksKeepTheFleet(t *testing.T) {
	setup := strict(3, PerMinute(1000))
	setup.options.SyncInterval = 10 * time.Second
	inBubble(t, setup, func(f *fleet) {
		time.Sleep(5 * time.Second)
		for range 60 {
			time.Sleep(777 * time.Millisecond)
			for i, n := range f.nodes {
				if m := n.Stats().Total.Fleet; m != 3 {
					t.Fatalf("node %d sees %d of 3 nodes", i, m)
				}
			}
		}
	})
}

// One registry of the wrong type is no outage, neither for its own limiter nor
// for the others.
func TestPoisonedRegistry(t *testing.T) {
	both(t, strict(2, PerMinute(1000)), func(f *fleet) {
		f.limiterOf("other", PerMinute(1000), Strict)
		ctx := context.Background()
		if err := f.admin.Del(ctx, "hybrid:{}m1:other").Err(); err != nil {
			t.Fatal(err)
		}
		if err := f.admin.Set(ctx, "hybrid:{}m1:other", "poison", 0).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3500 * time.Millisecond)
		for _, n := range f.nodes {
			if n.Stats().StoreDown {
				t.Error("the store is given up for one bad key")
			}
		}
		if r := allow(t, f.lims[0], "k", 1); !r.Allowed || r.Path == PathFallback {
			t.Errorf("%+v", r)
		}
		if err := f.admin.Del(ctx, "hybrid:{}m1:other").Err(); err != nil { // or Close could not leave it
			t.Fatal(err)
		}
	})
}

// Evicting a key in an outage does not give it a new share.
func TestEvictionMintsNothingInAnOutage(t *testing.T) {
	setup := strict(1, PerHour(10))
	setup.options.MaxKeys = 10
	inBubble(t, setup, func(f *fleet) {
		l := f.lims[0]
		time.Sleep(time.Second)
		f.links[0].Cut(true)
		admitted := 0
		for i := range 50 {
			admitted += admittedOf(t, l, "k", 11, 1)
			for j := range 20 {
				allow(t, l, string(rune('a'+i))+string(rune('a'+j)), 1)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if admitted > 10 {
			t.Errorf("%d admitted of a key of 10 per hour", admitted)
		}
		f.links[0].Cut(false)
		time.Sleep(3 * time.Second)
	})
}
