package batch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Batcher is a node's way to all parts of the store.
type Batcher struct {
	cfg    Config
	shards []*Shard

	Counts Counts

	latency    atomic.Int64 // ns, smoothed time of a call
	answeredAt atomic.Int64 // ns, when the store last answered; 0: not yet
	silent     atomic.Int32 // shards whose breakers are open; written under changing
	changing   sync.Mutex
}

// New returns a Batcher.
func New(cfg Config) *Batcher {
	b := &Batcher{cfg: cfg}
	b.Counts.CallTime, b.Counts.BatchSize = newHistogram(callTimes), newHistogram(batchSizes)
	b.latency.Store(int64(cfg.Timeout) / 10)
	for range cfg.Shards {
		b.shards = append(b.shards, newShard(b, cfg.Shards))
	}
	return b
}

// Shards returns the parts of the store.
func (b *Batcher) Shards() []*Shard { return b.shards }

// Latency returns the smoothed time of a call in ns.
func (b *Batcher) Latency() int64 { return b.latency.Load() }

// AnsweredAt returns when a part of the store last answered; 0: not yet.
func (b *Batcher) AnsweredAt() int64 { return b.answeredAt.Load() }

// Down reports whether a part of the store is silent.
func (b *Batcher) Down() bool { return b.silent.Load() > 0 }

// AllDown reports whether all of it is.
func (b *Batcher) AllDown() bool { return int(b.silent.Load()) == len(b.shards) }

// Tick allows each shard its background calls until the next tick, and sends what waits.
func (b *Batcher) Tick() {
	for _, s := range b.shards {
		s.tick() // where the store is silent, what waits is refused
	}
}

// Flush sends what waits in the background, where the store is not silent.
func (b *Batcher) Flush() {
	for _, s := range b.shards {
		if !s.Down() {
			s.Flush()
		}
	}
}

// Wait returns when no call is under way.
func (b *Batcher) Wait() {
	for _, s := range b.shards {
		<-s.quiet()
	}
}

// Ask executes one settle outside of all queues, and waits for it until ctx ends. The
// call goes on after that, within the call timeout.
func (b *Batcher) Ask(ctx context.Context, s *Shard, st *slice.Settle) error {
	if s.Down() {
		return ErrDown
	}
	sentAt := b.cfg.Now()
	return Within(ctx, func() error {
		batch := []*slice.Settle{st}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CallTimeout)
		defer cancel()
		over := sync.OnceFunc(func() { b.Counts.call(b.cfg.Now()-sentAt, 1) })
		defer time.AfterFunc(b.cfg.CallTimeout, over).Stop() // the context may be looked at too late
		b.cfg.Send(late, batch)
		over()
		s.judge(batch, sentAt)
		return nil
	})
}

// changed reports that the first part of the store has become silent, or that the last
// one is back.
func (b *Batcher) changed(open bool, cause error) {
	b.changing.Lock()
	defer b.changing.Unlock()
	switch {
	case open && b.silent.Add(1) == 1:
		b.Counts.BreakerOpens.Add(1)
		b.cfg.Changed(true, cause)
	case !open && b.silent.Add(-1) == 0:
		b.cfg.Changed(false, nil)
	}
}

// Counts are what a node's calls have been since it was made.
type Counts struct {
	Calls        atomic.Uint64 // calls that carried settles, once they have ended or were given up
	CallTime     *Histogram    // ns that each of them took, until then
	BatchSize    *Histogram    // settles that each of them carried
	BreakerOpens atomic.Uint64
}

// Bounds of what is counted of calls: times in ns from what a store in the same rack
// takes to what no request waits for, and every power of two of settles.
var (
	callTimes  = []int64{1e5, 25e4, 5e5, 1e6, 25e5, 5e6, 1e7, 2e7, 5e7, 1e8, 25e7, 5e8, 1e9, 2e9}
	batchSizes = []int64{1, 2, 4, 8, 16, 32, 64}
)

// call counts a call that has ended, or was given up.
func (c *Counts) call(took int64, settles int) {
	c.Calls.Add(1)
	c.CallTime.observe(took)
	c.BatchSize.observe(int64(settles))
}

// Within runs f and waits for it no longer than ctx, which f may ignore.
func Within(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
