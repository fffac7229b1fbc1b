package tests_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// contexts notes for each call to Redis whether it belongs to a request.
type contexts struct{ background, callers chan struct{} }

func (c *contexts) note(ctx context.Context) {
	to := c.callers
	if hybrid.IsBackground(ctx) {
		to = c.background
	}
	to <- struct{}{}
}

func (c *contexts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *contexts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.note(ctx)
		return next(ctx, cmd)
	}
}

func (c *contexts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.note(ctx)
		return next(ctx, cmds)
	}
}

// What a node sends for many callers, or for itself, can be told from what it sends for one.
func TestCallsWithoutARequestAreMarked(t *testing.T) {
	story(t, func(w *world) {
		rdb := redistest.NewLink(w.mini.Dial).Client(w.t)
		seen := &contexts{make(chan struct{}, 10_000), make(chan struct{}, 10_000)}
		rdb.AddHook(seen)
		n, err := hybrid.New(rdb, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := n.Limiter("api", hybrid.PerMinute(100), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
		if err != nil {
			t.Fatal(err)
		}
		admits(t, l, "k", 50)
		time.Sleep(time.Minute)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if marked, others := len(seen.background), len(seen.callers); marked < 50 || others > 0 {
			t.Errorf("%d calls are marked, %d are not; want all, in a minute with its heartbeats", marked, others)
		}
	})
}

// What a caller asks Redis for belongs to the caller's trace.
func TestCallsOfACallerAreItsOwn(t *testing.T) {
	story(t, func(w *world) {
		rdb := redistest.NewLink(w.mini.Dial).Client(w.t)
		seen := &contexts{make(chan struct{}, 10_000), make(chan struct{}, 10_000)}
		n, err := hybrid.New(rdb, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = n.Close() })
		l, err := n.Limiter("api", hybrid.PerMinute(100), nil)
		if err != nil {
			t.Fatal(err)
		}
		rdb.AddHook(seen)
		if _, err := l.Peek(ctx, "k"); err != nil {
			t.Error(err)
		}
		if err := l.Reset(ctx, "k"); err != nil {
			t.Error(err)
		}
		if len(seen.callers) < 2 {
			t.Errorf("%d calls of Peek and Reset belong to their caller, want 2", len(seen.callers))
		}
	})
}
