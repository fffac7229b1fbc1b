package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/fleet"
	"github.com/hybridlimit/hybrid/slice"
)

// At the end everything goes back, the node leaves, and no goroutine stays:
// the bubble would not end with one.
func TestShutdownReturnsAllSlices(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(60_000, time.Minute)
		l := w.limiter(rule, strict)
		for i := range 100 {
			hold(t, l, fmt.Sprint(i))
		}
		time.Sleep(time.Second)
		w.end()
		for i := range 100 {
			if _, lent := w.store.state(fmt.Sprintf("l/%d", i), rule); lent != 0 {
				t.Errorf("%d tokens of key %d are still lent", lent, i)
			}
		}
		equal(t, "keys", l.Keys(), 0)
		w.atRest(t)
		if !slices.Equal(w.store.left, []string{"l/me"}) {
			t.Errorf("left %v", w.store.left)
		}
		if _, err := allowCtx(context.Background(), l, "0", 1); !errors.Is(err, ErrClosed) {
			t.Errorf("afterwards: %v", err)
		}
		if _, _, err := w.Add(LimiterConfig{Name: "x", Plan: l.Plan()}); !errors.Is(err, ErrClosed) {
			t.Errorf("a new limiter: %v", err)
		}
		if w.Begin() {
			t.Error("a second end begins")
		}
	})
}

// Who waits when the node ends gets the store's answer.
func TestShutdownServesWhoWaits(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(5 * time.Millisecond)
		c := callers{l: w.limiter(bucket(10, time.Minute), exactly)}
		c.ask(1)
		c.ask(2)
		w.end()
		c.wg.Wait()
		for _, got := range c.answers {
			w.must("a caller", got, true, byStore)
		}
	})
}

// A store that hangs holds the end up no longer than the caller allows.
func TestShutdownIsBounded(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		hold(t, l, "k")
		gate := make(chan struct{})
		w.store.onCall(func([]*slice.Settle) { <-gate })
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		w.Begin()
		if err := w.Shutdown(ctx, func() {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		equal(t, "it took", time.Since(began), 300*time.Millisecond)
		close(gate)
	})
}

func TestShutdownWhileTheStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t), nil)
		l := w.limiter(bucket(60_000, time.Minute), strict)
		hold(t, l, "k")
		w.store.fail(slice.NotRun)
		for !w.Down() {
			allow(l, "new", 1)
			time.Sleep(10 * time.Millisecond)
		}
		began := time.Now()
		w.Begin()
		if err := w.Shutdown(context.Background(), func() {}); !errors.Is(err, ErrUnsettled) {
			t.Errorf("a slice could not go back, and Shutdown says %v", err)
		}
		equal(t, "it took", time.Since(began), time.Duration(0))
	})
}

// Of two limiters one closes: its slices go back and its name is free, the
// other goes on. The newcomer's registration is not mistaken for the old one's.
func TestOneLimiterCloses(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(60_000, time.Minute)
		l := w.limiter(rule, strict)
		other := w.add(LimiterConfig{Name: "other", Plan: l.Plan()})
		hold(t, l, "k")
		kept := hold(t, other, "k")
		if err := l.Close(context.Background(), func() {}); err != nil {
			t.Error(err)
		}
		if err := l.Close(context.Background(), func() {}); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		if _, lent := w.store.state("l/k", rule); lent != 0 {
			t.Errorf("%d tokens are still lent", lent)
		}
		if _, err := allowCtx(context.Background(), l, "k", 1); !errors.Is(err, ErrClosed) {
			t.Errorf("afterwards: %v", err)
		}
		if held(kept) == 0 {
			t.Error("the other limiter lost its slice")
		}
		again := w.limiter(rule, strict)
		w.must("its successor", allow(again, "k", 1), true, byStore)
		time.Sleep(2 * time.Second)
		equal(t, "registered", len(w.store.Members("l", fleet.TTL)), 1)
	})
}

func TestFlushTellsAllAndKeepsSlices(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(60_000, time.Minute)
		l := w.limiter(rule, strict)
		a := hold(t, l, "k")
		a.Charge(3)
		tokens := held(a)
		if err := w.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		if u := w.store.last().Usage; u.Spent < 3 || u.Held != tokens {
			t.Errorf("settled %+v, want 3 spent or more, and %d held", u, tokens)
		}
		equal(t, "tokens held", held(a), tokens)
		before := len(w.store.settles())
		a.Charge(tokens + 100) // more than the slice holds
		if err := w.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		u := w.store.settles()[before].Usage // the next may have brought a slice already
		if u.Charged != 100 || u.Spent != tokens {
			t.Errorf("settled %+v, want %d spent and 100 charged", u, tokens)
		}
	})
}

// A flush that finds a settle under way waits for the next one too, even if by
// then there is nothing left to tell.
func TestFlushDuringASettle(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(5 * time.Millisecond)
		c := callers{l: w.limiter(bucket(10, time.Minute), exactly)}
		c.ask(1)
		if err := w.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		c.wg.Wait()
		equal(t, "operations", w.store.opsOf("l/k"), 1)
	})
}

// What a flush could not settle is said so, and is told later.
func TestAFlushThatFails(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		a := hold(t, l, "k")
		tokens := held(a)
		w.store.onSettle(func(*slice.Settle) (slice.Outcome, error) { return slice.NotRun, errGone })
		if err := w.Flush(context.Background()); !errors.Is(err, ErrUnsettled) {
			t.Errorf("got %v", err)
		}
		equal(t, "tokens held", held(a), tokens)
		w.store.fail(slice.Ran)
		if err := w.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		w.store.slow(10 * time.Millisecond)
		if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
