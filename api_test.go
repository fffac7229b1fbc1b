package hybrid

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/exact"
)

// single is a fleet of one node, whose rest a test makes itself.
func single(limit Limit) fleetSetup { return strict(1, limit) }

func TestPeekChangesNothing(t *testing.T) {
	inBubble(t, single(PerHour(10)), func(f *fleet) {
		l, ctx := f.lims[0], context.Background()
		r, err := l.Peek(ctx, "k")
		if want := (Result{Allowed: true, Limit: 10, Remaining: 10, Path: PathExact}); err != nil || r != want {
			t.Errorf("Peek of a new key: %+v, %v; want %+v", r, err, want)
		}
		if f.mini.Exists(f.account("k")) {
			t.Error("Peek made an account")
		}
		if n := f.stats().Keys; n != 0 {
			t.Errorf("Peek made the node remember %d keys", n)
		}
		allow(t, l, "k", 4)
		before, _ := f.mini.Get(f.account("k"))
		for range 3 {
			if r, err = l.AllowN(ctx, "k", 0); err != nil || !r.Allowed || r.Remaining != 6 {
				t.Errorf("Peek after 4 of 10: %+v, %v", r, err)
			}
		}
		if after, _ := f.mini.Get(f.account("k")); after != before {
			t.Errorf("Peek changed the account from %q to %q", before, after)
		}
		allow(t, l, "k", 6)
		r, err = l.Peek(ctx, "k")
		if err != nil || r.Allowed || r.Remaining != 0 || r.RetryAfter <= 0 || r.RetryAfter > 6*time.Minute {
			t.Errorf("Peek of an empty key: %+v, %v", r, err)
		}
	})
}

func TestRefundGivesBackAndNeverMore(t *testing.T) {
	inBubble(t, single(PerHour(10)), func(f *fleet) {
		l := f.lims[0]
		allow(t, l, "k", 10)
		if r := allow(t, l, "k", 1); r.Allowed {
			t.Error("admitted an eleventh of ten")
		}
		if err := l.Refund("k", 4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Millisecond) // a sync interval or two
		if n := admittedOf(t, l, "k", 10, 1); n != 4 {
			t.Errorf("%d admitted after a refund of 4", n)
		}
		if err := l.Refund("k", 1000); err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Millisecond)
		if n := admittedOf(t, l, "k", 100, 1); n != 10 {
			t.Errorf("%d admitted after a refund of far more than the limit of 10", n)
		}
		if err := l.Refund("never seen", 5); err != nil {
			t.Error(err)
		}
	})
}

func TestChargeRunsIntoABoundedDebt(t *testing.T) {
	inBubble(t, single(PerSecond(10)), func(f *fleet) {
		l, ctx := f.lims[0], context.Background()
		for range 5 { // 100 tokens, of which one burst beyond the limit counts
			if err := l.Charge("k", 20); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(250 * time.Millisecond)
		r, err := l.Peek(ctx, "k")
		if err != nil || r.Allowed || r.RetryAfter < 900*time.Millisecond || r.RetryAfter > 1200*time.Millisecond {
			t.Errorf("in debt: %+v, %v; want a retry when the debt of 10 and one token have drained", r, err)
		}
		time.Sleep(r.RetryAfter)
		if r := allow(t, l, "k", 1); !r.Allowed {
			t.Errorf("the debt has drained, but %+v", r)
		}
	})
}

func TestResetFreesTheKey(t *testing.T) {
	inBubble(t, strict(2, PerDay(10)), func(f *fleet) {
		ctx := context.Background()
		f.exhaust("k", 1)
		if err := f.lims[0].Reset(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		if r := allow(t, f.lims[0], "k", 1); !r.Allowed {
			t.Errorf("the node that reset: %+v", r)
		}
		time.Sleep(10 * time.Second) // the other node's memo
		if r := allow(t, f.lims[1], "k", 1); !r.Allowed {
			t.Errorf("another node ten seconds later: %+v", r)
		}
	})
}

func TestTiers(t *testing.T) {
	var pro atomic.Bool
	var calls atomic.Int64
	setup := single(PerHour(5))
	setup.limiter.LimitFor = func(key string) (Limit, bool) {
		calls.Add(1)
		switch {
		case strings.HasPrefix(key, "pro") && pro.Load():
			return PerHour(20), true
		case key == "broken":
			return Limit{}, true
		case key == "panics":
			panic("tiers")
		}
		return Limit{}, false
	}
	inBubble(t, setup, func(f *fleet) {
		l := f.lims[0]
		long := "pro-" + strings.Repeat("x", 100)
		for key, want := range map[string]int{"free": 5, "pro": 5, long: 5, "broken": 5, "panics": 5} {
			if n := admittedOf(t, l, key, 50, 1); n != want {
				t.Errorf("%.10s: %d admitted, want %d", key, n, want)
			}
		}
		if got := l.Limit("pro"); got != PerHour(5) {
			t.Errorf("Limit: %v", got)
		}
		pro.Store(true) // an upgrade
		before := calls.Load()
		time.Sleep(100 * time.Millisecond) // a sync interval: denials from memory are judged anew
		for _, key := range []string{"pro", long} {
			if n := admittedOf(t, l, key, 50, 1); n != 15 {
				t.Errorf("%.10s: %d more admitted after the upgrade from 5 to 20, want 15", key, n)
			}
		}
		if n := calls.Load() - before; n > 10 {
			t.Errorf("LimitFor was called %d times", n)
		}
		if got := l.Limit("pro"); got != PerHour(20) {
			t.Errorf("Limit: %v", got)
		}
		if n := f.stats().InvalidTiers; n < 2 {
			t.Errorf("%d invalid answers counted, want both kinds", n)
		}
	})
}

func TestShadowAllowsAndCounts(t *testing.T) {
	setup := single(PerHour(3))
	setup.limiter.Shadow = true
	inBubble(t, setup, func(f *fleet) {
		shadowed := 0
		for range 10 {
			r := allow(t, f.lims[0], "k", 1)
			if !r.Allowed || r.RetryAfter != 0 {
				t.Errorf("in shadow mode: %+v", r)
			}
			if r.Shadowed {
				shadowed++
			}
		}
		if n := f.stats().Shadowed; shadowed != 7 || n != 7 {
			t.Errorf("%d shadowed, %d counted, want 7", shadowed, n)
		}
	})
}

func TestWaitersPassInOrder(t *testing.T) {
	inBubble(t, single(PerSecond(10)), func(f *fleet) {
		l, ctx := f.lims[0], context.Background()
		allow(t, l, "k", 10)
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		start := time.Now()
		for i := range 20 {
			time.Sleep(time.Millisecond)
			all.Go(func() {
				if err := l.Wait(ctx, "k"); err != nil {
					t.Errorf("Wait: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
		}
		all.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("they passed in the order %v", order)
			}
		}
		if d := time.Since(start); d < 2*time.Second-50*time.Millisecond || d > 2500*time.Millisecond {
			t.Errorf("20 at 10 per second took %v", d)
		}
		time.Sleep(time.Second) // the last one leaves when Redis has been told
		if n := l.waits.Callers(); n != 0 {
			t.Errorf("%d wait still", n)
		}
	})
}

func TestWaitReturnsAtOnceIfItWouldBeTooLate(t *testing.T) {
	inBubble(t, single(PerMinute(1)), func(f *fleet) {
		l := f.lims[0]
		allow(t, l, "k", 1)
		short, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		first, cancelFirst := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- l.Wait(first, "k") }()
		time.Sleep(time.Second) // it stands first in line, for the rest of a minute
		start := time.Now()
		if err := l.Wait(short, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait with too near a deadline: %v", err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %v", d)
		}
		cancelFirst()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the first in line: %v", err)
		}
		if err := l.Wait(short, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("now first in line: %v", err)
		}
		if err := l.Wait(short, "other"); err != nil {
			t.Errorf("another key: %v", err)
		}
	})
}

func TestAllowAllIsAllOrNothing(t *testing.T) {
	inBubble(t, single(PerHour(100)), func(f *fleet) {
		ctx := context.Background()
		user := f.lims[0]
		tenant := f.limiterOf("tenant", PerHour(3), Strict)
		for i := range 10 {
			r, err := f.nodes[0].AllowAll(ctx, Check{user, "u", 2}, Check{tenant, "t", 0})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case i < 3 && (!r.Allowed || r.Limit != 3):
				t.Errorf("call %d: %+v; want admitted, described by the tightest", i, r)
			case i >= 3 && (r.Allowed || r.Limit != 3 || r.RetryAfter <= 0):
				t.Errorf("call %d: %+v; want denied, described by the limit that denied", i, r)
			}
		}
		time.Sleep(250 * time.Millisecond)
		if r, err := user.Peek(ctx, "u"); err != nil || r.Remaining != 94 {
			t.Errorf("the other limit: %+v, %v; want 94 of 100 left: only what passed is charged", r, err)
		}
		if r, err := f.nodes[0].AllowAll(ctx); err != nil || !r.Allowed {
			t.Errorf("no checks: %+v, %v", r, err)
		}
	})
}

// Whom a limit in shadow mode would have denied, no other limit hides: wherever it is
// listed, and however tight the others are. It counts what they admit, and no more.
func TestAllowAllTellsWhomShadowModeLetPass(t *testing.T) {
	for _, c := range []struct {
		why                string
		limit              Limit // of the trial
		cost               int64
		enforced           Limit
		admitted, shadowed int // of 8 calls
	}{
		{"a limit of 0", PerHour(0), 1, PerHour(10), 8, 8},
		{"a cost that no longer fits, beside a tighter limit", PerHour(100), 60, PerHour(8), 8, 7},
		{"a limit beside one of its size", PerHour(3), 1, PerHour(8), 8, 5},
		{"a limit beside one that denies", PerHour(1), 1, PerHour(3), 3, 2},
	} {
		for trialAt := range 2 {
			inBubble(t, single(c.enforced), func(f *fleet) {
				trial, err := f.nodes[0].Limiter("trial", c.limit, &LimiterOptions{Accuracy: Strict, Shadow: true})
				if err != nil {
					t.Fatal(err)
				}
				checks := []Check{{f.lims[0], "k", 1}, {f.lims[0], "k", 1}}
				checks[trialAt] = Check{trial, "k", c.cost}
				admitted, shadowed := 0, 0
				for range 8 {
					r, err := f.nodes[0].AllowAll(context.Background(), checks...)
					if err != nil {
						t.Fatal(err)
					}
					if r.Allowed {
						admitted++
					}
					if !r.Shadowed {
						continue
					}
					shadowed++
					if int(r.Check) != trialAt || r.Limit != c.limit.Burst() || r.RetryAfter != 0 {
						t.Errorf("%s: %+v; want the trial's, which is check %d", c.why, r, trialAt)
					}
				}
				counted := f.nodes[0].Stats().Limiters["trial"].Shadowed
				if admitted != c.admitted || shadowed != c.shadowed || counted != uint64(c.shadowed) {
					t.Errorf("%s, check %d: %d admitted, %d told, %d counted; want %d, %d and as many", c.why, trialAt, admitted, shadowed, counted, c.admitted, c.shadowed)
				}
			})
		}
	}
}

// However many limits a request must pass, it waits for StoreTimeout once.
func TestAllowAllWaitsOnce(t *testing.T) {
	var slow atomic.Bool
	setup := single(PerHour(100))
	setup.rtt = func() time.Duration {
		if slow.Load() {
			return time.Second
		}
		return time.Millisecond
	}
	inBubble(t, setup, func(f *fleet) {
		var checks []Check
		for _, name := range []string{"a", "b", "c", "d"} {
			checks = append(checks, Check{Limiter: f.limiterOf(name, PerHour(100), Exact), Key: "k"})
		}
		time.Sleep(time.Second)
		slow.Store(true)
		start := time.Now()
		r, err := f.nodes[0].AllowAll(context.Background(), checks...)
		if took := time.Since(start); err != nil || r.Path != PathFallback || took != 20*time.Millisecond {
			t.Errorf("%+v, %v after %v, want an answer by policy after 20 ms", r, err, took)
		}
		slow.Store(false)
	})
}

func TestLongKeysShareOneAccount(t *testing.T) {
	inBubble(t, single(PerHour(10)), func(f *fleet) {
		key := strings.Repeat("long ", 40)
		allow(t, f.lims[0], key, 4)
		f.flush()
		d, err := f.truth.Take(context.Background(), "api", key, PerHour(10), 6)
		if err != nil || !d.Allowed || d.Remaining > 0 {
			t.Errorf("the store on its own: %+v, %v; want the last 6 of 10", d, err)
		}
		// Its digest is another key.
		if d, err := f.truth.Take(context.Background(), "api", exact.CellKey(key), PerHour(10), 10); err != nil || !d.Allowed {
			t.Errorf("the digest as a key: %+v, %v", d, err)
		}
	})
}

func TestLimiterCloseAllowsItsNameAgain(t *testing.T) {
	inBubble(t, strict(2, PerHour(100)), func(f *fleet) {
		l := f.lims[1]
		for range 10 {
			allow(t, l, "k", 1)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Allow(context.Background(), "k"); !errors.Is(err, ErrClosed) {
			t.Errorf("Allow after Close: %v", err)
		}
		for _, err := range []error{l.Refund("k", 1), l.Wait(context.Background(), "k"), l.Reset(context.Background(), "k")} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		if g := f.state("k", PerHour(100)); g.Lent != 0 || g.Used < 9.9 || g.Used > 10 {
			t.Errorf("after Close the account is %+v, want 10 used and nothing lent", g)
		}
		again, err := f.nodes[1].Limiter("api", PerHour(100), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := allow(t, again, "k", 1); !r.Allowed {
			t.Errorf("%+v", r)
		}
	})
}

// A limiter is listed as long as it takes requests, whether it is closed or its node.
func TestLimitersThatAreOpen(t *testing.T) {
	inBubble(t, single(PerSecond(10)), func(f *fleet) {
		n := f.nodes[0]
		second := f.limiterOf("second", PerSecond(10), Strict)
		listed := func(when string, want ...*Limiter) {
			t.Helper()
			if open := n.Limiters(); !slices.Equal(open, want) {
				t.Errorf("%s: %d limiters are open, want %d", when, len(open), len(want))
			}
		}
		listed("at first", f.lims[0], second)
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		listed("when one is closed", f.lims[0])
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		listed("when the node is closed")
	})
}

func TestStoreEventsAreLoggedOnceAndHooked(t *testing.T) {
	var log bytes.Buffer
	var events []StoreEvent
	setup := single(PerSecond(1000))
	setup.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	setup.options.Hooks.Store = func(e StoreEvent) {
		events = append(events, e)
		panic("hooks may")
	}
	inBubble(t, setup, func(f *fleet) {
		allow(t, f.lims[0], "k", 1)
		f.links[0].Cut(true)
		for range 100 {
			time.Sleep(5 * time.Millisecond)
			if r := allow(t, f.lims[0], "other", 1); !r.Allowed {
				t.Errorf("within the fair share: %+v", r)
			}
		}
		if !f.nodes[0].Stats().StoreDown {
			t.Error("half a second without Redis, and the store is not down")
		}
		f.links[0].Cut(false)
		time.Sleep(3 * time.Second)
		synctest.Wait() // the hook has returned
		if s := f.nodes[0].Stats(); s.StoreDown || s.StoreDowns != 1 {
			t.Errorf("Redis is back: down %v, %d times", s.StoreDown, s.StoreDowns)
		}
		if len(events) != 2 || !events[0].Down || events[0].Err == nil || events[1].Down {
			t.Errorf("events %+v, want one down and one up", events)
		}
		if n := strings.Count(log.String(), "does not answer"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log.String())
		}
	})
}

// A limit of 0 suspends a key, and its account waits in Redis for the next limit.
func TestResetUnderALimitOfZero(t *testing.T) {
	story := func(f *fleet, set func(Limit)) {
		t.Helper()
		l, ctx := f.lims[0], context.Background()
		allow(t, l, "k", 10)
		set(PerDay(0))
		if err := l.Reset(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		if r := allow(t, l, "k", 1); r.Allowed || r.RetryAfter != Never {
			t.Errorf("still suspended: %+v", r)
		}
		set(PerDay(10))
		if n := admittedOf(t, l, "k", 20, 1); n != 10 {
			t.Errorf("%d of 10 admitted after a Reset under a limit of 0", n)
		}
		set(PerDay(0))
		f.links[0].Cut(true)
		if err := l.Reset(ctx, "k"); err == nil {
			t.Error("Redis is away, and Reset says that it is done")
		}
	}
	inBubble(t, single(PerDay(10)), func(f *fleet) {
		story(f, func(l Limit) {
			if err := f.lims[0].SetLimit(l); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		})
	})
	var tier atomic.Pointer[Limit]
	setup := single(PerDay(5))
	setup.limiter.LimitFor = func(string) (Limit, bool) { return *tier.Load(), true }
	set := func(l Limit) { tier.Store(&l); time.Sleep(time.Second) }
	inBubble(t, setup, func(f *fleet) {
		set(PerDay(10))
		story(f, set)
	})
}

// How long the first in line waits is for its own cost: nobody is refused for it once
// it has left, or once there is news.
func TestNobodyIsRefusedForAWaitThatIsOver(t *testing.T) {
	setup := single(PerHour(10))
	setup.rtt = func() time.Duration { return 10 * time.Millisecond }
	setup.options.StoreTimeout = time.Second
	for name, end := range map[string]func(l *Limiter, leave func()){
		"the first leaves": func(_ *Limiter, leave func()) { leave(); synctest.Wait() },
		"a higher limit": func(l *Limiter, _ func()) {
			if err := l.SetLimit(PerHour(20)); err != nil {
				t.Error(err)
			}
		},
	} {
		inBubble(t, setup, func(f *fleet) {
			l := f.lims[0]
			allow(t, l, "k", 6)
			first, leave := context.WithCancel(context.Background())
			var all sync.WaitGroup
			all.Go(func() { _ = l.WaitN(first, "k", 10) }) // 36 minutes
			time.Sleep(time.Second)
			all.Go(func() {
				if err := l.Wait(context.Background(), "k"); err != nil {
					t.Errorf("%s: the second: %v", name, err)
				}
			})
			time.Sleep(time.Second)
			end(l, leave)
			for range 3 { // before the news is heard, and while somebody asks
				all.Go(func() {
					short, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					defer cancel()
					if err := l.Wait(short, "k"); err != nil {
						t.Errorf("%s: one token, and it is free: %v", name, err)
					}
				})
				time.Sleep(5 * time.Millisecond)
			}
			all.Wait()
			leave()
		})
	}
}

// Those ahead in line may leave: who comes after them is not refused for their sake.
func TestALongLineRefusesNobody(t *testing.T) {
	inBubble(t, single(PerSecond(1)), func(f *fleet) {
		l := f.lims[0]
		allow(t, l, "k", 1)
		ahead, leave := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { _ = l.Wait(ahead, "k") })
		}
		time.Sleep(500 * time.Millisecond)
		time.AfterFunc(time.Second, leave)
		short, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := l.Wait(short, "k"); err != nil {
			t.Errorf("behind ten who leave after a second: %v", err)
		}
		all.Wait()
	})
}

// Whatever limit is set last, the decisions are made by the one that is shown.
func TestTwoLimitsAtOnce(t *testing.T) {
	_, l := offline(t)
	limits := []Limit{PerHour(10), PerHour(20)}
	for range 20_000 {
		var both sync.WaitGroup
		for _, limit := range limits {
			both.Go(func() {
				if err := l.SetLimit(limit); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if shown, used := l.OwnLimit().Burst(), l.core.Plan().Burst; shown != used {
			t.Fatalf("the limit is %d and decisions are made by %d", shown, used)
		}
	}
}

// What can never pass is seen before anybody is asked, wherever it stands among the
// checks, and leaves no account behind.
func TestAllowAllAsksNobodyForWhatCanNeverPass(t *testing.T) {
	inBubble(t, fleetSetup{nodes: 1, limit: PerHour(1000), limiter: LimiterOptions{Accuracy: Exact}}, func(f *fleet) {
		n, good := f.nodes[0], f.lims[0]
		zero := f.limiterOf("zero", PerHour(0), Exact)
		small := f.limiterOf("small", PerHour(5), Strict)
		for name, last := range map[string]Check{"a limit of 0": {zero, "z", 1}, "a cost above the burst": {small, "s", 6}} {
			single := allow(t, last.Limiter, "alone", last.N)
			for range 100 {
				r, err := n.AllowAll(ctx, Check{good, "k", 1}, last)
				if want := (Result{Limit: single.Limit, Remaining: single.Remaining, RetryAfter: Never, Path: PathExact, Check: 1}); err != nil || r != want {
					t.Fatalf("%s: %+v, %v; want %+v", name, r, err, want)
				}
			}
			allow(t, last.Limiter, last.Key, last.N) // now there is an account
			if r, err := n.AllowAll(ctx, Check{good, "k", 1}, last); err != nil || r.Allowed || r.RetryAfter != Never {
				t.Errorf("%s, of a known key: %+v, %v", name, r, err)
			}
			if st := n.Stats().Limiters[last.Limiter.Name()]; st.ExactDenied != 103 || st.Keys > 2 {
				t.Errorf("%s: %d denials counted of 103, %d keys", name, st.ExactDenied, st.Keys)
			}
		}
		if total := n.Stats().Total; total.Operations != 0 {
			t.Errorf("%d operations for requests that numbers alone deny", total.Operations)
		}
	})
}

// Whether a key is paced, on its floor or shared with others: what Peek says, the next
// request meets, and no retry is named that is too early.
func TestPeekSaysWhatTheNextRequestMeets(t *testing.T) {
	for _, acc := range []Accuracy{Balanced, Strict, Exact} {
		for _, limit := range []Limit{PerMinute(10), PerMinute(600), Window(20, 10*time.Second)} {
			inBubble(t, fleetSetup{nodes: 2, limit: limit, limiter: LimiterOptions{Accuracy: acc}}, func(f *fleet) {
				time.Sleep(10 * time.Second) // floors are open
				wrong, yes, paced := 0, 0, 0
				for i := range 600 {
					time.Sleep(time.Duration(i%7) * 100 * time.Millisecond)
					node := i * i % 3 % 2
					p, err := f.lims[node].Peek(ctx, "k")
					if err != nil || p.Allowed != (p.RetryAfter == 0) || p.Path != PathExact {
						t.Errorf("Peek: %+v, %v", p, err)
					}
					r := f.ask(node, "k", 1)
					if p.Allowed != r.Allowed {
						wrong++
					}
					if p.Allowed {
						yes++
					}
					if r.Path == PathMemo {
						paced++
						if p.RetryAfter+50*time.Millisecond < r.RetryAfter {
							t.Errorf("Peek names %v, and then it is %v", p.RetryAfter, r.RetryAfter)
						}
					}
				}
				t.Logf("%v of %v: of 600, %d said yes, %d denied from memory, %d said otherwise", acc, limit, yes, paced, wrong)
				if wrong > 6 {
					t.Errorf("%v of %v: %d of 600 times Peek said otherwise", acc, limit, wrong)
				}
			})
		}
	}
}

// Who flushes or closes while Redis is away can tell that from other errors.
func TestWhatRedisDidNotTakeIsAnErrorOfItsOwn(t *testing.T) {
	inBubble(t, single(PerHour(100)), func(f *fleet) {
		n, l := f.nodes[0], f.lims[0]
		other := f.limiterOf("other", PerHour(100), Strict)
		allow(t, l, "k", 1)
		allow(t, other, "k", 1)
		f.links[0].Cut(true)
		for _, limiter := range []*Limiter{l, other} {
			if err := limiter.Charge("k", 5); err != nil {
				t.Fatal(err)
			}
		}
		f.gone[0] = true
		for _, c := range []struct {
			what string
			call func() error
		}{
			{"Flush", func() error { return n.Flush(ctx) }}, {"Limiter.Close", other.Close}, {"Node.Close", n.Close},
		} {
			if err := c.call(); !errors.Is(err, ErrUnsettled) || !strings.HasPrefix(err.Error(), "hybrid: ") {
				t.Errorf("%s: %v", c.what, err)
			}
		}
		if err := errors.Join(other.Close(), n.Close(), n.Shutdown(ctx)); err != nil {
			t.Errorf("a second time: %v", err)
		}
	})
}
