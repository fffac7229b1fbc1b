package syncer

import (
	"context"
	"testing"
	"time"
)

// A flood of one key costs the store one operation per pacing period, and the
// limit is used up all the same.
func TestAFloodIsPaced(t *testing.T) {
	for _, c := range []struct {
		name string
		gap  time.Duration
	}{
		{"two and a half times the limit", 40 * time.Millisecond},
		{"a hundred times the limit", time.Millisecond},
	} {
		story(t, func(t *testing.T, w *world) {
			rule := bucket(100, 10*time.Second) // 10 per second; the pace is 5 costs or 0.5 s
			l := w.limiter(rule, strict)
			flood(l, "k", 1, c.gap, 30*time.Second)
			before := w.store.opsOf("l/k")
			allowed, denied := flood(l, "k", 1, c.gap, 100*time.Second)
			admitted := 0
			for _, n := range allowed {
				admitted += n
			}
			if admitted > 1010 || admitted < 960 {
				t.Errorf("%s: %d admitted in 100 s, want 1000", c.name, admitted)
			}
			if ops := w.store.opsOf("l/k") - before; ops < 160 || ops > 260 {
				t.Errorf("%s: %d operations in 200 periods", c.name, ops)
			}
			if denied[byStore] > denied[byMemo]/5 {
				t.Errorf("%s: %v denied", c.name, denied)
			}
		})
	}
}

// An account that nobody asks for any more is not asked for by the pace either.
func TestPacingEndsWithTheFlood(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 10*time.Second), strict)
		flood(l, "k", 1, time.Millisecond, 20*time.Second)
		time.Sleep(20 * time.Second)
		before := w.store.opsOf("l/k")
		time.Sleep(time.Minute)
		equal(t, "operations in a calm minute", w.store.opsOf("l/k")-before, 0)
		w.atRest(t)
		used, lent := w.store.state("l/k", l.Plan().Rule)
		if used != 0 || lent != 0 {
			t.Errorf("%v used, %d lent", used, lent)
		}
	})
}

// Whoever waits as long as it was told, and is alone, is admitted then.
func TestRetryAfterIsKept(t *testing.T) {
	for _, cost := range []int64{1, 3, 40, 100} {
		for _, dial := range []Dial{exactly, strict} {
			for _, window := range []bool{false, true} {
				story(t, func(t *testing.T, w *world) {
					rule := bucket(100, 10*time.Second)
					if window {
						rule = fixed(100, 10*time.Second)
					}
					l := w.limiter(rule, dial)
					for range 30 {
						r := allow(l, "k", cost)
						for r.allowed {
							r = allow(l, "k", cost)
						}
						if r.retry <= 0 || r.retry > 10*time.Second+time.Microsecond {
							t.Fatalf("cost %d, %+v, window %t: retry after %v", cost, dial, window, r.retry)
						}
						time.Sleep(r.retry)
						if r := allow(l, "k", cost); !r.allowed {
							t.Fatalf("cost %d, %+v, window %t: %+v after the time that was told", cost, dial, window, r)
						}
					}
				})
			}
		}
	}
}

// A denial from memory answers for costs as large as the refused one, and lets
// smaller ones ask.
func TestMemoriesAreForTheirCosts(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(100, 100*time.Second)
		l := w.limiter(rule, exactly)
		w.store.use("l/k", rule, 95)
		w.must("10 of 5", allow(l, "k", 10), false, byStore)
		ops := w.store.opsOf("l/k")
		w.must("10 again", allow(l, "k", 10), false, byMemo)
		w.must("20", allow(l, "k", 20), false, byMemo)
		equal(t, "operations", w.store.opsOf("l/k")-ops, 0)
		w.must("4", allow(l, "k", 4), true, byStore)
		w.must("101 never fit", allow(l, "k", 101), false, byStore)
	})
}

// Many wait at a saturated key and hear of one refusal: the first retry that
// was told is kept, though later refusals come in between.
func TestTheFirstPromiseIsKept(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(10, 10*time.Second)
		l := w.limiter(rule, exactly)
		w.store.use("l/k", rule, 10)
		first := allow(l, "k", 2) // fits in 2 s
		told := time.Now().Add(first.retry)
		for time.Until(told) > 0 {
			time.Sleep(min(150*time.Millisecond, time.Until(told)))
			if time.Until(told) > 0 {
				allow(l, "k", 5)
			}
		}
		w.must("at the promised time", allow(l, "k", 2), true, byStore)
	})
}

// Costs above a share of the slice are admitted at the full rate, too: what is
// left of a slice that cannot serve them goes back with the request.
func TestLargeCostsAreNotStarved(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 10*time.Second), strict)
		w.store.use("l/k", l.Plan().Rule, 100)
		tokens := int64(0)
		for i := range 1000 {
			cost := int64(1)
			if i%2 == 1 {
				cost = 30
			}
			if allow(l, "k", cost).allowed {
				tokens += cost
			}
			time.Sleep(100 * time.Millisecond)
		}
		if tokens < 900 || tokens > 1001 {
			t.Errorf("%d tokens in 100 s, want 1000", tokens)
		}
	})
}

func TestADenialIsForgottenByReset(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(10, time.Minute)
		l := w.limiter(rule, strict)
		w.store.use("l/k", rule, 10)
		w.must("a full account", allow(l, "k", 1), false, byStore)
		if err := l.Reset(context.Background(), "k", rule); err != nil {
			t.Fatal(err)
		}
		w.must("after a reset", allow(l, "k", 10), true, byStore)
	})
}
