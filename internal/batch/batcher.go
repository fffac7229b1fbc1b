package batch

import (
	"sync"
	"sync/atomic"
)

// Batcher is a node's way to all parts of the store.
type Batcher struct {
	cfg    Config
	shards []*Shard

	Counts Counts

	latency    atomic.Int64 // ns, smoothed time of a call
	answeredAt atomic.Int64 // ns, when the store last answered; 0: not yet
	down       atomic.Int32 // shards whose breakers are open; written under changing
	changing   sync.Mutex
}

// New returns a Batcher.
func New(cfg Config) *Batcher {
	b := &Batcher{cfg: cfg}
	b.Counts.CallTime, b.Counts.BatchSize = newHistogram(callTimes), newHistogram(batchSizes)
	b.latency.Store(int64(cfg.Timeout) / 10)
	for i := range cfg.Shards {
		b.shards = append(b.shards, newShard(b, i))
	}
	return b
}

// Shards returns the parts of the store.
func (b *Batcher) Shards() []*Shard { return b.shards }

// Latency returns the smoothed time of a call in ns.
func (b *Batcher) Latency() int64 { return b.latency.Load() }

// AnsweredAt returns when a part of the store last answered; 0: not yet.
func (b *Batcher) AnsweredAt() int64 { return b.answeredAt.Load() }

// Down reports whether a shard is down.
func (b *Batcher) Down() bool { return b.down.Load() > 0 }

// AllDown reports whether all shards are.
func (b *Batcher) AllDown() bool { return int(b.down.Load()) == len(b.shards) }

// Tick allows each shard its background calls until the next tick, and sends what waits.
func (b *Batcher) Tick() {
	for _, s := range b.shards {
		s.tick() // where a shard is down, what waits is refused
	}
}

// Flush sends what waits in the background, in the shards that are not down.
func (b *Batcher) Flush() {
	for _, s := range b.shards {
		if !s.Down() {
			s.Flush()
		}
	}
}

// Wait returns once no call is under way, in one shard after the other.
func (b *Batcher) Wait() {
	for _, s := range b.shards {
		<-s.quiet()
	}
}

// changed reports a change of the whole: shards that fail one after the other are one
// outage.
func (b *Batcher) changed(down bool, cause error) {
	b.changing.Lock()
	defer b.changing.Unlock()
	switch {
	case down && b.down.Add(1) == 1:
		b.Counts.BreakerOpens.Add(1)
		b.cfg.Changed(true, cause)
	case !down && b.down.Add(-1) == 0:
		b.cfg.Changed(false, nil)
	}
}

// Counts are what a node's calls have been since it was made.
type Counts struct {
	Calls        atomic.Uint64 // calls that carried settles, once they have ended or were given up
	CallTime     *Histogram    // ns that each of them took, until then
	BatchSize    *Histogram    // settles that each of them carried
	BreakerOpens atomic.Uint64 // outages: times that the first breaker opened
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
