// Package tests_test is the library as its users see it: fleets of nodes on one store, in
// virtual time, judged by what callers get and by what Redis has in its books.
package tests_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

var ctx = context.Background()

// world is a store and the nodes on it.
type world struct {
	t    *testing.T
	mini *miniredis.Miniredis
}

// node is one server.
type node struct {
	*hybrid.Node
	w    *world
	link *redistest.Link
}

// story runs a test in virtual time.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	redistest.InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) {
		tell(&world{t: t, mini: mini})
	})
}

// node starts a server, 600 µs from the store. It is closed at the end of the test.
func (w *world) node(opts hybrid.Options) *node {
	w.t.Helper()
	link := redistest.NewLink(w.mini.Dial)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	n, err := hybrid.New(link.Client(w.t), &opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = n.Close() })
	return &node{n, w, link}
}

// limiter makes a limiter on a node.
func (n *node) limiter(name string, l hybrid.Limit, opts hybrid.LimiterOptions) *hybrid.Limiter {
	n.w.t.Helper()
	lim, err := n.Limiter(name, l, &opts)
	if err != nil {
		n.w.t.Fatal(err)
	}
	return lim
}

// crash ends a node as a crash does: the store hears nothing of it any more.
func (n *node) crash() {
	n.link.Cut(true)
	_ = n.Close()
}

// all decides a request of several limits.
func (n *node) all(checks ...hybrid.Check) hybrid.Result {
	n.w.t.Helper()
	r, err := n.AllowAll(ctx, checks...)
	if err != nil && !errors.Is(err, hybrid.ErrClosed) {
		n.w.t.Error(err)
	}
	return r
}

func allow(t *testing.T, l *hybrid.Limiter, key string, cost int64) hybrid.Result {
	t.Helper()
	r, err := l.AllowN(ctx, key, cost)
	if err != nil {
		t.Error(err)
	}
	return r
}

// admits counts the requests of one token that are admitted until one is not, or most.
func admits(t *testing.T, l *hybrid.Limiter, key string, most int) (n int) {
	t.Helper()
	for n < most && allow(t, l, key, 1).Allowed {
		n++
	}
	return n
}

// books returns what Redis has of a key, asked through a node that has nothing to do with it.
func (w *world) books(limiter string, l hybrid.Limit, accuracy hybrid.Accuracy, key string) hybrid.AccountState {
	w.t.Helper()
	n := w.node(hybrid.Options{})
	lim := n.limiter(limiter, l, hybrid.LimiterOptions{Accuracy: accuracy})
	s, err := lim.Inspect(ctx, key)
	if err != nil || s.Store == nil {
		w.t.Fatalf("the store does not answer: %v, %s", err, s.StoreCause)
	}
	_ = n.Close()
	return *s.Store
}

// equal compares floats that have drained a little meanwhile.
func near(got, want, slack float64) bool { return got >= want-slack && got <= want+slack }

// until sleeps to a moment.
func until(at time.Time) { time.Sleep(time.Until(at)) }
