package waiting

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/syncer"
)

// Callers pass in the order in which they came, wherever one leaves, and an empty line is no more.
func TestCallersPassInOrder(t *testing.T) {
	w := New(3)
	line, first := w.Join("k")
	_, second := w.Join("k")
	_, third := w.Join("k")
	if none, _ := w.Join("k"); none != nil || w.Callers() != 3 {
		t.Fatalf("%d callers, and a place behind three: %t", w.Callers(), none != nil)
	}
	if !Closed(first) || Closed(second) || Closed(third) {
		t.Fatal("the first one asks, and the others wait")
	}
	w.Leave("k", line, second)
	w.Leave("k", line, first)
	if !Closed(third) {
		t.Error("the place was not given on")
	}
	w.Leave("k", line, third)
	if len(w.lines) != 0 {
		t.Errorf("%d lines are left", len(w.lines))
	}
}

// A caller that waits hears of the end of its context, of its limiter, and of news.
func TestSleepEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *Lines, ended chan struct{}, cancel func())
		want error
	}{
		"the time is over": {func(*Lines, chan struct{}, func()) {}, nil},
		"news":             {func(w *Lines, _ chan struct{}, _ func()) { w.Wake() }, nil},
		"the end":          {func(_ *Lines, ended chan struct{}, _ func()) { close(ended) }, syncer.ErrClosed},
		"the caller":       {func(_ *Lines, _ chan struct{}, cancel func()) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, ended := New(1), make(chan struct{})
				line, place := w.Join("k")
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if err := line.Await(ctx, place, ended); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(time.Second, func() { c.end(w, ended, cancel) })
				began := time.Now()
				if err := line.Sleep(ctx, time.Minute, time.Minute, w.News(), ended); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if took := time.Since(began); took != time.Second && (name != "the time is over" || took != time.Minute) {
					t.Errorf("after %v", took)
				}
			})
		})
	}
}

// Who cannot pass before its deadline is told at once: behind the first one, too, unless there is
// news that the first one may not have noticed.
func TestAWaitThatWouldBeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ended := New(2), make(chan struct{})
		line, _ := w.Join("k")
		_, second := w.Join("k")
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := line.Sleep(short, time.Minute, time.Minute, w.News(), ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first: %v", err)
		}
		go func() { _ = line.Sleep(context.Background(), time.Minute, time.Minute, w.News(), ended) }()
		synctest.Wait()
		began := time.Now()
		if err := line.Await(short, second, ended); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 0 {
			t.Errorf("the second: %v, after %v", err, time.Since(began))
		}
		w.Wake()
		if err := line.Await(short, second, ended); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after news: %v, after %v", err, time.Since(began))
		}
		close(ended)
	})
}
