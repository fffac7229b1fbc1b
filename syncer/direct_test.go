package syncer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// A charge comes out of the slice if it can; otherwise the store hears of it
// within two ticks.
func TestCharge(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(60_000, time.Hour)
		l := w.limiter(rule, strict)
		charge(l, "k", 600)
		time.Sleep(200 * time.Millisecond)
		used, _ := w.store.state("l/k", rule)
		if used < 595 || used > 600 {
			t.Errorf("%v used, want 600", used)
		}
		a := hold(t, l, "s")
		before, tokens := w.store.opsOf("l/s"), held(a)
		a.Charge(3)
		equal(t, "tokens held", held(a), tokens-3)
		time.Sleep(200 * time.Millisecond)
		equal(t, "operations", w.store.opsOf("l/s"), before)
	})
}

// Charges may run into a debt of one burst, no deeper.
func TestADebtIsOneBurst(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(100, 100*time.Second)
		l := w.limiter(rule, strict)
		for range 10 {
			charge(l, "k", 50)
			time.Sleep(200 * time.Millisecond)
		}
		used, _ := w.store.state("l/k", rule)
		if used < 199 || used > 200 {
			t.Errorf("%v used, want two bursts", used)
		}
		r := allow(l, "k", 1)
		w.must("in debt", r, false, byStore)
		if r.retry < 99*time.Second || r.retry > 102*time.Second {
			t.Errorf("told to retry after %v", r.retry)
		}
	})
}

// Without a reply nobody knows whether the store was told. A charge is told again, and
// counts twice at worst; a refund is not, and is lost at worst.
func TestACallWithoutAReply(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(100_000, 24*time.Hour)
		l := w.limiter(rule, exactly)
		replyIsLost := func(call func(*Account) bool) (used float64) {
			t.Helper()
			before, _ := w.store.state("l/k", rule)
			w.store.fail(slice.Unknown) // executed, and nobody hears of it
			call(l.Account("k", "k"))
			time.Sleep(300 * time.Millisecond)
			w.store.fail(slice.Ran)
			for range 3 { // requests pay for telling it again
				time.Sleep(2 * time.Second)
				allow(l, "k", 1)
			}
			time.Sleep(3 * time.Second)
			after, _ := w.store.state("l/k", rule)
			return math.Round((after-before)/100) * 100
		}
		equal(t, "used for a charge of 3000", replyIsLost(func(a *Account) bool { return a.Charge(3000) }), 6000)
		equal(t, "used for a refund of 2000", replyIsLost(func(a *Account) bool { return a.Refund(2000) }), -2000)
	})
}

// A refund goes back into the slice that it came from, or to the store.
func TestRefund(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(60_000, time.Hour)
		l := w.limiter(rule, strict)
		a := hold(t, l, "s")
		tokens := held(a)
		a.Cell.Take(2, &w.Dead)
		a.Refund(2)
		equal(t, "tokens held", held(a), tokens)
		w.must("a large cost", allow(l, "k", 1000), true, byStore)
		b, _ := l.Load("k")
		b.Refund(1000)
		time.Sleep(300 * time.Millisecond)
		used, _ := w.store.state("l/k", rule)
		equal(t, "used", used, 0)
	})
}

// A late refund gives back what has been refilled since, for nobody knows by then which
// of the tokens drained; but it never leaves more than the limit free.
func TestALateRefund(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(10, 10*time.Second)
		l := w.limiter(rule, exactly)
		late := func(wait time.Duration) (free int64) {
			t.Helper()
			w.must("five", allow(l, "k", 5), true, byStore)
			time.Sleep(wait)
			w.must("half of it", allow(l, "k", 5), true, byStore)
			l.Account("k", "k").Refund(5)
			time.Sleep(250 * time.Millisecond)
			used, _ := w.store.state("l/k", rule)
			time.Sleep(time.Minute)
			return int64(math.Round(10 - used))
		}
		equal(t, "free after a prompt refund", late(0), 5)
		equal(t, "free after one that comes when all was refilled", late(5*time.Second), 10)
	})
}

// A refund of tokens that were refused for lets the next request ask.
func TestARefundEndsADenial(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(10, time.Minute)
		l := w.limiter(rule, exactly)
		w.must("all", allow(l, "k", 10), true, byStore)
		w.must("one more", allow(l, "k", 1), false, byStore)
		w.must("from memory", allow(l, "k", 1), false, byMemo)
		a, _ := l.Load("k")
		a.Refund(10)
		time.Sleep(300 * time.Millisecond)
		w.must("after the refund", allow(l, "k", 5), true, byStore)
	})
}

func TestARefundToTheFloor(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 10*time.Second), floored)
		time.Sleep(time.Minute)
		equal(t, "the floor", floorOf(l, "k"), 50)
		a, _ := l.Load("k")
		a.Undo(7, byFloor, w.Now())
		equal(t, "after a refund", floorOf(l, "k"), 7)
	})
}

// What was charged to a window that is over is not charged to the next.
func TestChargesStayInTheirWindow(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := fixed(100, 10*time.Second)
		l := w.limiter(rule, strict)
		allow(l, "k", 1) // learns the store's clock
		time.Sleep(time.Until(time.Now().Truncate(10*time.Second).Add(10*time.Second)) - 30*time.Millisecond)
		charge(l, "k", 40)
		time.Sleep(time.Second)
		used, _ := w.store.state("l/k", rule)
		equal(t, "used in the new window", used, 0)
	})
}

// Reading changes nothing: not the account, and not what the node keeps.
func TestRead(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(100, 100*time.Second)
		l := w.limiter(rule, strict)
		w.store.use("l/k", rule, 30)
		g, err := l.Read(context.Background(), "k", rule)
		if err != nil || g.Used != 30 {
			t.Errorf("%+v, %v", g, err)
		}
		equal(t, "keys", l.Keys(), 0)
	})
}

// A read or a reset that the store does not answer in time says so; one whose
// caller leaves gives that caller's error.
func TestReadIsBounded(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(100, 100*time.Second)
		l := w.limiter(rule, strict)
		w.store.shared = true
		w.store.slow(50 * time.Millisecond)
		began := time.Now()
		if _, err := l.Read(context.Background(), "k", rule); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v", err)
		}
		equal(t, "it took", time.Since(began), 20*time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		if err := l.Reset(ctx, "k", rule); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		w.store.onCall(nil)
		w.store.onSettle(func(*slice.Settle) (slice.Outcome, error) { return slice.NotRun, errGone })
		if _, err := l.Read(context.Background(), "k", rule); !errors.Is(err, errGone) {
			t.Errorf("got %v", err)
		}
		w.store.fail(slice.Ran)
	})
}

// A reset frees all but what is out on lease; this node's slice goes back.
func TestReset(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(60_000, time.Hour)
		l := w.limiter(rule, strict)
		w.store.use("l/k", rule, 1000)
		w.store.lend("l/k", rule, 70)
		a := hold(t, l, "k")
		if err := l.Reset(context.Background(), "k", rule); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		equal(t, "tokens held", held(a), 0)
		used, lent := w.store.state("l/k", rule)
		if lent != 70 || used < 69 || used > 70 {
			t.Errorf("%v used, %d lent, want the other node's 70 alone", used, lent)
		}
	})
}

// A full table makes room: the slice of the key that leaves goes back first.
func TestEvictionReturnsSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t), func(c *Config) { c.MaxKeys = 10 })
		rule := bucket(60_000, time.Minute)
		l := w.limiter(rule, strict)
		for i := range 30 {
			hold(t, l, fmt.Sprint(i))
		}
		time.Sleep(10 * time.Millisecond)
		equal(t, "keys", l.Keys(), 10)
		equal(t, "evictions", w.Evictions(), 20)
		lent := 0
		for i := range 30 {
			if _, n := w.store.state(fmt.Sprintf("l/%d", i), rule); n > 0 {
				lent++
			}
		}
		equal(t, "accounts with a lease", lent, 10)
		w.end()
	})
}

// When every key is busy a newcomer is served once, by a cell of its own that
// has no floor and keeps no slice.
func TestANewcomerAtAFullTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(t)
		store.shared = true
		w := newWorld(t, store, func(c *Config) { c.MaxKeys = 2 })
		l := w.limiter(bucket(100, time.Minute), floored)
		asked, _, err := w.Add(LimiterConfig{Name: "asked", Plan: NewPlan(bucket(1000, time.Minute), exactly)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		store.slow(10 * time.Millisecond)
		for range 5 {
			for _, key := range []string{"a", "b"} {
				go allow(asked, key, 60)
			}
			synctest.Wait()
			time.Sleep(time.Millisecond)
			w.must("a newcomer", allow(l, "c", 1), true, byStore)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(3 * time.Minute)
		w.atRest(t)
		w.end()
	})
}

// Charges and refunds that come faster than ticks do not put off the settle that tells them.
func TestSteadyChargesAndRefundsAreTold(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(1000, 1000*time.Second)
		l := w.limiter(rule, strict)
		used := func() float64 {
			used, _ := w.store.state("l/k", rule)
			return used
		}
		for range 600 {
			charge(l, "k", 1)
			time.Sleep(99 * time.Millisecond)
		}
		if u := used(); u < 500 {
			t.Errorf("%.0f used, of 600 charged in a minute", u)
		}
		for range 600 {
			a := l.Account("k", "k")
			a.Refund(1)
			time.Sleep(99 * time.Millisecond)
		}
		if u := used(); u > 100 {
			t.Errorf("%.0f used, when all has been given back", u)
		}
	})
}

// lateReply is a store that has executed a request's settle for a while when it answers.
type lateReply struct {
	*fake
	late atomic.Bool
}

func (s *lateReply) Settle(ctx context.Context, batch []*slice.Settle) {
	s.fake.Settle(ctx, batch)
	if len(batch[0].Usage.Needs) > 0 && s.late.Load() {
		time.Sleep(10 * time.Millisecond)
	}
}

// A refusal that was under way when the account was reset is over with its answer.
func TestARefusalFromBeforeAResetIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lateReply{fake: newFake(t)}
		store.shared = true
		w := newWorld(t, store.fake, func(c *Config) { c.Store = store })
		rule := bucket(100, 10000*time.Second)
		l := w.limiter(rule, exactly)
		w.store.use("l/k", rule, 100)
		store.late.Store(true)
		go allow(l, "k", 1)
		time.Sleep(2 * time.Millisecond)
		if err := l.Reset(context.Background(), "k", rule); err != nil {
			t.Fatal(err)
		}
		store.late.Store(false)
		time.Sleep(50 * time.Millisecond)
		w.must("after the reset", allow(l, "k", 1), true, byStore)
		w.end()
	})
}

// What a floor has served and not told before a Reset is forgotten with the rest.
func TestAResetForgetsWhatTheFloorOwes(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(1000, time.Hour)
		l := w.limiter(rule, floored)
		time.Sleep(time.Hour) // floors are earned
		for range 50 {
			w.must("the floor", allow(l, "k", 1), true, byFloor)
		}
		if err := l.Reset(context.Background(), "k", rule); err != nil {
			t.Fatal(err)
		}
		w.must("much", allow(l, "k", 500), true, byStore)
		time.Sleep(time.Second)
		if used, _ := w.store.state("l/k", rule); used > 501 {
			t.Errorf("%.0f used, want 500", used)
		}
	})
}
