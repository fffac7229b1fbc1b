package tests_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// What AllowAll took of one limit and gives back because another denied must not be
// there twice: once by the refill, and once more.
func TestWhatAllowAllGivesBackIsNotThereTwice(t *testing.T) {
	for _, accuracy := range []hybrid.Accuracy{hybrid.Exact, hybrid.Strict, hybrid.Balanced} {
		t.Run(accuracy.String(), func(t *testing.T) {
			story(t, func(w *world) {
				a, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
				opts := hybrid.LimiterOptions{Accuracy: accuracy}
				userA, userB := a.limiter("user", hybrid.PerMinute(100), opts), b.limiter("user", hybrid.PerMinute(100), opts)
				shared := a.limiter("shared", hybrid.PerHour(1), hybrid.LimiterOptions{Accuracy: hybrid.Exact})
				allow(t, shared, "s", 1)
				time.Sleep(20 * time.Second) // the denial is forgotten
				r := a.all(hybrid.Check{Limiter: userA, Key: "u", N: 90}, hybrid.Check{Limiter: shared, Key: "s"})
				if r.Allowed {
					t.Fatal("the shared limit is used up")
				}
				time.Sleep(55 * time.Second)
				began := time.Now()
				got := 0
				for range 20 {
					if allow(t, userB, "u", 10).Allowed {
						got += 10
					}
					if allow(t, userA, "u", 10).Allowed {
						got += 10
					}
				}
				most := (1 + accuracy.Over()) * (100 + 100.0/60*time.Since(began).Seconds())
				if float64(got) > most {
					t.Errorf("%d admitted in %v, at most %.1f", got, time.Since(began), most)
				}
			})
		})
	}
}

// What AllowAll gives back late, as Redis did not take it at first, has drained meanwhile.
func TestWhatAllowAllGivesBackLateHasDrained(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
		opts := hybrid.LimiterOptions{Accuracy: hybrid.Exact}
		userA, userB := a.limiter("user", hybrid.PerMinute(100), opts), b.limiter("user", hybrid.PerMinute(100), opts)
		shared := b.limiter("shared", hybrid.PerHour(1), opts)
		allow(t, shared, "s", 1)
		sharedA := a.limiter("shared", hybrid.PerHour(1), opts)
		faults := []redistest.Fault{redistest.None, redistest.None} // the user's tokens, and the denial
		for range 1000 {
			faults = append(faults, redistest.Refused)
		}
		a.link.Inject(faults...)
		if r := a.all(hybrid.Check{Limiter: userA, Key: "u", N: 90}, hybrid.Check{Limiter: sharedA, Key: "s"}); r.Allowed || r.Check != 1 {
			t.Fatalf("%+v", r)
		}
		time.Sleep(55 * time.Second)
		began, got := time.Now(), admits(t, userB, "u", 1000)
		a.link.Mend()
		time.Sleep(3 * time.Second) // what waits is told
		got += admits(t, userB, "u", 1000) + admits(t, userA, "u", 1000)
		if most := 100 + 100.0/60*time.Since(began).Seconds(); float64(got) > most {
			t.Errorf("%d admitted in %v, at most %.1f", got, time.Since(began), most)
		}
	})
}

// A put-back belongs to the window it was taken in.
func TestWhatAllowAllGivesBackStaysInItsWindow(t *testing.T) {
	for _, accuracy := range []hybrid.Accuracy{hybrid.Exact, hybrid.Strict} {
		t.Run(accuracy.String(), func(t *testing.T) {
			story(t, func(w *world) {
				n, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
				opts := hybrid.LimiterOptions{Accuracy: accuracy}
				window, windowB := n.limiter("window", hybrid.Window(10, 10*time.Second), opts), b.limiter("window", hybrid.Window(10, 10*time.Second), opts)
				shared := n.limiter("shared", hybrid.PerHour(1), hybrid.LimiterOptions{Accuracy: hybrid.Exact})
				allow(t, shared, "s", 1)
				time.Sleep(20 * time.Second)
				allow(t, window, "w", 1)
				edge := time.Now().Truncate(10 * time.Second).Add(10 * time.Second)
				until(edge.Add(-4 * time.Millisecond))
				n.link.RTT(func() time.Duration { return 5 * time.Millisecond })
				var first sync.WaitGroup
				got := 0
				first.Go(func() { // all of the new window, before anything comes back
					until(edge.Add(100 * time.Microsecond))
					if allow(t, windowB, "w", 10).Allowed {
						got = 10
					}
				})
				r := n.all(hybrid.Check{Limiter: window, Key: "w", N: 9}, hybrid.Check{Limiter: shared, Key: "s"})
				if r.Allowed || r.Check != 1 || time.Now().Before(edge) {
					t.Fatalf("%+v, %v before the edge", r, time.Until(edge))
				}
				n.link.RTT(func() time.Duration { return 600 * time.Microsecond })
				first.Wait()
				for until(edge.Add(10 * time.Millisecond)); time.Until(edge.Add(9*time.Second)) > 0; time.Sleep(50 * time.Millisecond) {
					got += admits(t, window, "w", 100)
				}
				if got != 10 {
					t.Errorf("%d admitted in a window of 10", got)
				}
			})
		})
	}
}

// What one node took for a denied request is there for the others soon, though the node is
// not asked again.
func TestWhatAllowAllGivesBackIsThereForOthers(t *testing.T) {
	for _, accuracy := range []hybrid.Accuracy{hybrid.Exact, hybrid.Strict, hybrid.Balanced} {
		t.Run(accuracy.String(), func(t *testing.T) {
			story(t, func(w *world) {
				a, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
				opts := hybrid.LimiterOptions{Accuracy: accuracy}
				userA, userB := a.limiter("user", hybrid.PerDay(1), opts), b.limiter("user", hybrid.PerDay(1), opts)
				shared := a.limiter("shared", hybrid.PerHour(1), hybrid.LimiterOptions{Accuracy: hybrid.Exact})
				allow(t, shared, "s", 1)
				time.Sleep(20 * time.Second)
				a.all(hybrid.Check{Limiter: userA, Key: "u"}, hybrid.Check{Limiter: shared, Key: "s"})
				time.Sleep(250 * time.Millisecond) // two ticks and a call
				if r := allow(t, userB, "u", 1); !r.Allowed {
					t.Errorf("denied on the other node: %+v", r)
				}
			})
		})
	}
}

// An AllowAll whose node closes puts back what it took, or Close says that it did not.
func TestAllowAllWhileItsNodeCloses(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			story(t, func(w *world) {
				n := w.node(hybrid.Options{})
				opts := hybrid.LimiterOptions{Accuracy: hybrid.Exact}
				first, second := n.limiter("first", hybrid.PerDay(10), opts), n.limiter("second", hybrid.PerDay(10), opts)
				var calls sync.WaitGroup
				admitted := false
				calls.Go(func() {
					r, err := n.AllowAll(ctx, hybrid.Check{Limiter: first, Key: "k"}, hybrid.Check{Limiter: second, Key: "k"})
					admitted = err == nil && r.Allowed
				})
				time.Sleep(time.Duration(i) * 70 * time.Microsecond)
				err := n.Close()
				calls.Wait()
				used := w.books("first", hybrid.PerDay(10), hybrid.Exact, "k").Used
				if used > 0.01 && !admitted && !errors.Is(err, hybrid.ErrUnsettled) {
					t.Errorf("%v used, admitted %t, Close: %v", used, admitted, err)
				}
			})
		})
	}
}

// A request of k limits costs at most 2k − 1 operations: each limit is asked once, and
// what was taken before the last one denies is put back at once.
func TestAllowAllCostsAtMostTwiceItsLimits(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		var checks []hybrid.Check
		for i := range 4 {
			l := n.limiter(fmt.Sprint("l", i), hybrid.PerDay(int64(1000-333*i)), hybrid.LimiterOptions{Accuracy: hybrid.Exact})
			checks = append(checks, hybrid.Check{Limiter: l, Key: "k"})
		}
		for i := range 200 {
			before := n.Stats().Total.Operations
			n.all(checks...)
			time.Sleep(300 * time.Millisecond)
			if ops := n.Stats().Total.Operations - before; ops > 2*4-1 {
				t.Errorf("request %d: %d operations for 4 limits", i, ops)
			}
		}
	})
}
