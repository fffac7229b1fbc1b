package tests_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// everyAccuracy are the settings that come to different paths.
var everyAccuracy = []hybrid.Accuracy{hybrid.Exact, hybrid.Strict, hybrid.Balanced}

// An unlimited key is admitted in memory, also while Redis is away, and Redis hears nothing of it.
func TestUnlimitedKeysCostNothing(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		for _, accuracy := range everyAccuracy {
			l := n.limiter(accuracy.String(), hybrid.Unlimited(), hybrid.LimiterOptions{Accuracy: accuracy, OnFailure: hybrid.FailClosed})
			whole := hybrid.Unlimited().Burst()
			want := hybrid.Result{Allowed: true, Limit: whole, Remaining: whole, Path: hybrid.PathExact}
			for _, down := range []bool{false, true} {
				n.link.Cut(down)
				for _, cost := range []int64{1, 1000, whole} {
					if r := allow(t, l, "k", cost); r != want {
						t.Errorf("%v, down %t, cost %d: %+v", accuracy, down, cost, r)
					}
				}
				if err := l.WaitN(ctx, "k", 5); err != nil {
					t.Errorf("%v: %v", accuracy, err)
				}
				if err := errors.Join(l.Charge("k", 5), l.Refund("k", 5)); err != nil {
					t.Error(err)
				}
			}
			n.link.Cut(false)
			time.Sleep(time.Minute)
			if r, err := l.Peek(ctx, "k"); r != want || err != nil {
				t.Errorf("Peek: %+v, %v", r, err)
			}
			if s, err := l.Inspect(ctx, "k"); err != nil || s.Store != nil {
				t.Errorf("Inspect: %+v, %v", s.Store, err)
			}
			if s := n.Stats().Limiters[l.Name()]; s.Operations != 0 || s.ExactAllowed != 8 {
				t.Errorf("%d operations, %d admitted by the numbers, want 0 and 8", s.Operations, s.ExactAllowed)
			}
		}
	})
}

// A key that becomes unlimited is so at once, for those that wait as well; a limit
// that comes back finds what had been used before, or less.
func TestALimitLiftedAndSetAgain(t *testing.T) {
	for _, accuracy := range everyAccuracy {
		t.Run(accuracy.String(), func(t *testing.T) {
			story(t, func(w *world) {
				n := w.node(hybrid.Options{})
				l := n.limiter("api", hybrid.PerDay(20), hybrid.LimiterOptions{Accuracy: accuracy})
				used := admits(t, l, "k", 100)
				if used < 20 || used > 22 {
					t.Fatalf("%d of 20 admitted", used)
				}
				waited := make(chan error, 1)
				go func() { waited <- l.WaitN(ctx, "k", 1) }()
				time.Sleep(time.Second)
				if err := l.SetLimit(hybrid.Unlimited()); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-waited:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Second):
					t.Error("a caller waits for an unlimited key")
				}
				if got := admits(t, l, "k", 1000); got != 1000 {
					t.Errorf("%d of 1000 admitted without a limit", got)
				}
				if err := l.SetLimit(hybrid.PerDay(20)); err != nil {
					t.Fatal(err)
				}
				if got := admits(t, l, "k", 1000); got > 2 {
					t.Errorf("%d admitted of a limit that had been used up", got)
				}
			})
		})
	}
}

// An unlimited check of AllowAll neither tells nor is charged, and can be reset.
func TestUnlimitedBesideALimit(t *testing.T) {
	story(t, func(w *world) {
		n := w.node(hybrid.Options{})
		free := n.limiter("free", hybrid.Unlimited(), hybrid.LimiterOptions{})
		tight := n.limiter("tight", hybrid.PerDay(2), hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		for i, want := range []bool{true, true, false} {
			r := n.all(hybrid.Check{Limiter: free, Key: "k"}, hybrid.Check{Limiter: tight, Key: "k"})
			if r.Allowed != want || r.Check != 1 || r.Limit != 2 {
				t.Errorf("request %d: %+v", i, r)
			}
		}
		if err := free.Reset(ctx, "k"); err != nil {
			t.Error(err)
		}
		if s := n.Stats().Limiters["free"]; s.Operations > 1 {
			t.Errorf("%d operations of the unlimited limiter, of which the reset may be one", s.Operations)
		}
	})
}
