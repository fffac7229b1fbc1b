package tests_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Leases end within two epochs: a limit that was lowered while another node, which has
// crashed, held a slice of the old one does not deny for hours.
func TestRetryAfterEndsWithTheLeases(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
		opts := hybrid.LimiterOptions{Accuracy: hybrid.Strict}
		la, lb := a.limiter("api", hybrid.PerMinute(100_000), opts), b.limiter("api", hybrid.PerMinute(100_000), opts)
		for range 3000 {
			allow(t, lb, "k", 1)
			time.Sleep(time.Millisecond)
		}
		if err := la.SetLimit(hybrid.PerMinute(10)); err != nil {
			t.Fatal(err)
		}
		b.crash()
		time.Sleep(time.Second)
		r := allow(t, la, "k", 1)
		if r.Allowed || r.RetryAfter > 3*time.Minute+6*time.Second { // two epochs, a debt of a burst, and a token
			t.Errorf("allowed %t, retry after %v", r.Allowed, r.RetryAfter)
		}
		late, cancel := context.WithTimeout(ctx, 4*time.Minute)
		defer cancel()
		if err := la.Wait(late, "k"); err != nil {
			t.Errorf("Wait: %v", err)
		}
	})
}

// A raised limit wakes those who wait by the old one.
func TestARaisedPlanWakesWhoWaits(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		limit := hybrid.PerDay(10)
		l := n.limiter("api", hybrid.PerDay(1), hybrid.LimiterOptions{
			Accuracy: hybrid.Exact, LimitFor: func(string) (hybrid.Limit, bool) { return limit, true },
		})
		for range 12 {
			allow(t, l, "k", 1)
		}
		woken := make(chan error, 1)
		go func() { woken <- l.Wait(ctx, "k") }()
		time.Sleep(time.Second)
		limit = hybrid.PerDay(100)
		time.Sleep(200 * time.Millisecond)
		if !allow(t, l, "k", 1).Allowed {
			t.Fatal("denied by the raised limit")
		}
		time.Sleep(time.Second)
		select {
		case err := <-woken:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("Wait sleeps on")
		}
		_ = n.Close()
	})
}

// A slice whose requests cannot pay for its return is reclaimed for who needs it.
func TestASilentSliceIsReclaimed(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
		opts := hybrid.LimiterOptions{Accuracy: hybrid.Strict}
		la, lb := a.limiter("api", hybrid.PerSecond(50), opts), b.limiter("api", hybrid.PerSecond(50), opts)
		time.Sleep(2 * time.Second)
		allow(t, la, "k", 1)
		time.Sleep(50 * time.Millisecond)
		allow(t, la, "k", 1)
		time.Sleep(10 * time.Second)
		began, tries := time.Now(), 0
		for ; time.Since(began) < time.Minute; tries++ {
			r := allow(t, lb, "k", 50)
			if r.Allowed {
				break
			}
			time.Sleep(r.RetryAfter)
		}
		t.Logf("%d operations on a, %d on b, %d tries", a.Stats().Total.Operations, b.Stats().Total.Operations, tries)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("admitted after %v and %d tries", took, tries)
		}
		if ops := a.Stats().Total.Operations + b.Stats().Total.Operations; ops > uint64(tries)+3 {
			t.Errorf("%d operations for %d requests", ops, tries+3)
		}
	})
}

// The first in line gets its turn, whatever smaller costs do.
func TestALargeCostGetsItsTurn(t *testing.T) {
	for _, accuracy := range []hybrid.Accuracy{hybrid.Exact, hybrid.Strict, hybrid.Balanced} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprint(accuracy, " apart ", apart), func(t *testing.T) {
				story(t, func(w *world) {
					a, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
					opts := hybrid.LimiterOptions{Accuracy: accuracy}
					la, lb := a.limiter("api", hybrid.PerSecond(20), opts), b.limiter("api", hybrid.PerSecond(20), opts)
					small := la
					if apart {
						small = lb
					}
					stop, done := make(chan struct{}), make(chan struct{})
					go func() {
						defer close(done)
						for {
							select {
							case <-stop:
								return
							case <-time.After(4 * time.Millisecond):
								_, _ = small.Allow(ctx, "k")
							}
						}
					}()
					time.Sleep(3 * time.Second)
					late, cancel := context.WithTimeout(ctx, 10*time.Second)
					defer cancel()
					began := time.Now()
					err := la.WaitN(late, "k", 15)
					if took := time.Since(began); err != nil || took > 1800*time.Millisecond {
						t.Errorf("15 of 20 per second after %v: %v", took, err)
					}
					close(stop)
					<-done
				})
			})
		}
	}
}

// Waiters of one cost on several nodes are served in turn: none waits a quarter longer than
// another.
func TestWaitersOnSeveralNodesAreServedInTurn(t *testing.T) {
	story(t, func(w *world) {
		var took [4]time.Duration
		var all sync.WaitGroup
		for i := range took {
			n := w.node(hybrid.Options{})
			l := n.limiter("api", hybrid.PerSecond(20), hybrid.LimiterOptions{Accuracy: hybrid.Strict})
			all.Go(func() {
				time.Sleep(2*time.Second + time.Duration(i)*time.Millisecond)
				began := time.Now()
				for range 20 {
					if err := l.WaitN(ctx, "k", 15); err != nil {
						t.Error(err)
					}
				}
				took[i] = time.Since(began)
			})
		}
		all.Wait()
		// 80 times 15 tokens at 20 per second take 59 s in all, whichever node has them.
		if most, least := slices.Max(took[:]), slices.Min(took[:]); most > least*5/4 || most > 64*time.Second {
			t.Errorf("20 turns took %v", took)
		}
	})
}

// Who leaves while waiting for a turn gives it back.
func TestWhoLeavesGivesTheTurnBack(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		limit := hybrid.PerMinute(20)
		l := n.limiter("api", limit, hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		allow(t, l, "k", 20)
		late, cancel := context.WithCancel(ctx)
		go func() {
			time.Sleep(5 * time.Second)
			cancel()
		}()
		if err := l.WaitN(late, "k", 15); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		if used := w.books("api", limit, hybrid.Exact, "k").Used; !near(used, 18, 0.5) {
			t.Errorf("%v used 6 s after 20 of 20 per minute, want 18", used)
		}
	})
}

// More callers than one key may have on a node are refused at once, and are counted no longer.
func TestWaitersAreBounded(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		l := n.limiter("api", hybrid.PerHour(1), hybrid.LimiterOptions{MaxWaiters: 3})
		allow(t, l, "k", 1)
		late, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { _ = l.Wait(late, "k") })
		}
		time.Sleep(time.Second)
		if got := n.Stats().Total.Waiters; got != 3 {
			t.Errorf("%d waiters, want 3", got)
		}
		if err := l.Wait(late, "k"); !errors.Is(err, hybrid.ErrTooManyWaiters) {
			t.Errorf("got %v", err)
		}
		if err := l.Wait(late, "other"); err != nil {
			t.Errorf("another key: %v", err)
		}
		cancel()
		all.Wait()
		if got := n.Stats().Total.Waiters; got != 0 {
			t.Errorf("%d waiters, want none", got)
		}
	})
}

// A limiter may wait longer for Redis than the others of its node.
func TestALimiterHasItsOwnStoreTimeout(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		feed := n.limiter("feed", hybrid.PerHour(100), hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
		login := n.limiter("login", hybrid.PerHour(100), hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed, StoreTimeout: time.Second})
		n.link.RTT(func() time.Duration { return 100 * time.Millisecond })
		if r := allow(t, login, "k", 1); !r.Allowed || r.Path != hybrid.PathExact {
			t.Errorf("login: %+v", r)
		}
		if r := allow(t, feed, "k", 1); r.Path != hybrid.PathFallback {
			t.Errorf("feed: %+v", r)
		}
		if _, err := n.Limiter("x", hybrid.PerHour(1), &hybrid.LimiterOptions{StoreTimeout: time.Minute}); !errors.Is(err, hybrid.ErrInvalidOption) {
			t.Errorf("a minute: %v", err)
		}
	})
}
