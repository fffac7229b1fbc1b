package tests_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// settling are the calls that return when Redis has been told all.
var settling = map[string]func(n *node) error{
	"close": func(n *node) error { return n.Close() },
	"flush": func(n *node) error { return n.Flush(ctx) },
}

// What an evicted key holds and owes reaches Redis before Close and Flush return.
func TestClosingSettlesWhatWasEvicted(t *testing.T) {
	for name, end := range settling {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				limit := hybrid.PerHour(6000)
				n := w.node(hybrid.Options{MaxKeys: 1})
				l := n.limiter("api", limit, hybrid.LimiterOptions{Accuracy: hybrid.Strict})
				admitted := 0
				for range 50 {
					if allow(t, l, "a", 1).Allowed {
						admitted++
					}
					time.Sleep(10 * time.Millisecond)
				}
				if err := l.Charge("a", 500); err != nil {
					t.Fatal(err)
				}
				n.link.RTT(func() time.Duration { return 15 * time.Millisecond }) // longer than the books are asked for
				allow(t, l, "b", limit.Burst()+1)                                 // never fits, and evicts a
				if err := end(n); err != nil {
					t.Fatal(err)
				}
				books := w.books("api", limit, hybrid.Strict, "a")
				if n.Stats().Evictions > 0 && books.Lent > 0 {
					t.Errorf("%d lent to a key that was evicted", books.Lent)
				}
				if used := books.Used - float64(books.Lent); !near(used, float64(admitted+500), 2) || name == "close" && books.Lent > 0 {
					t.Errorf("%v used, %d lent; want %d used", used, books.Lent, admitted+500)
				}
			})
		})
	}
}

// The slice of an evicted key is on its way back, and Flush and Close wait until it is there.
func TestClosingWaitsForTheSlicesOfTheEvicted(t *testing.T) {
	for name, end := range settling {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				limit := hybrid.PerHour(6000)
				n := w.node(hybrid.Options{MaxKeys: 1})
				l := n.limiter("api", limit, hybrid.LimiterOptions{Accuracy: hybrid.Strict})
				admitted := 0
				for range 50 {
					admitted += admits(t, l, "a", 1)
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(time.Second) // nothing is to be told
				n.link.RTT(func() time.Duration { return 15 * time.Millisecond })
				allow(t, l, "b", limit.Burst()+1) // never fits, and evicts a
				if n.Stats().Evictions != 1 {
					t.Fatal("a was not evicted")
				}
				if err := end(n); err != nil {
					t.Fatal(err)
				}
				if b := w.books("api", limit, hybrid.Strict, "a"); b.Lent > 0 || !near(b.Used, float64(admitted), 3) {
					t.Errorf("%v used, %d lent, want %d used", b.Used, b.Lent, admitted)
				}
			})
		})
	}
}

// The same for keys that found no room in a table of busy ones.
func TestClosingSettlesWhatFoundNoRoom(t *testing.T) {
	for name, end := range settling {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				limit := hybrid.PerHour(6000)
				n := w.node(hybrid.Options{MaxKeys: 1})
				l := n.limiter("api", limit, hybrid.LimiterOptions{Accuracy: hybrid.Exact})
				n.link.RTT(func() time.Duration { return 15 * time.Millisecond })
				go func() { _, _ = l.Allow(ctx, "busy") }()
				time.Sleep(time.Millisecond)
				for i := range 8 {
					if err := l.Charge(fmt.Sprint("k", i), 100); err != nil {
						t.Error(err)
					}
				}
				if err := end(n); err != nil {
					t.Error(err)
				}
				for i := range 8 {
					if b := w.books("api", limit, hybrid.Exact, fmt.Sprint("k", i)); !near(b.Used, 100, 2) {
						t.Errorf("key %d: %v used, want 100", i, b.Used)
					}
				}
			})
		})
	}
}

// Keys without a place in the table have one share of the limit together while Redis is
// silent, or a victim that never finds a place would have a fresh one each time.
func TestKeysWithoutAPlaceShareOneShare(t *testing.T) {
	for _, most := range []int{8, 128, 1024} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			story(t, func(w *world) {
				n := w.node(hybrid.Options{MaxKeys: most})
				l := n.limiter("api", hybrid.PerHour(10), hybrid.LimiterOptions{Accuracy: hybrid.Strict})
				time.Sleep(time.Second)
				n.link.RTT(func() time.Duration { return 10 * time.Second })
				for i := range most {
					go func() { _, _ = l.Allow(ctx, fmt.Sprint("busy", i)) }()
				}
				time.Sleep(5 * time.Millisecond)
				got := 0
				for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(3 * time.Millisecond) {
					if allow(t, l, "victim", 1).Allowed {
						got++
					}
				}
				n.link.RTT(func() time.Duration { return 600 * time.Microsecond })
				time.Sleep(30 * time.Second)
				if got > 21 { // the share of all without a place, and its own once it has one
					t.Errorf("%d admitted of 10 per hour", got)
				}
				if err := n.Flush(ctx); err != nil && !errors.Is(err, hybrid.ErrUnsettled) {
					t.Error(err)
				}
			})
		})
	}
}
