package syncer

import (
	"context"
	"sync/atomic"

	"github.com/hybridlimit/hybrid/internal/batch"
	"github.com/hybridlimit/hybrid/internal/fleet"
	"github.com/hybridlimit/hybrid/slice"
)

// link is a node's way to the store, part by part.
type link struct {
	parts   Sharded
	batcher *batch.Batcher
	shards  []*shard
	slow    slowWatch
}

// shard is one part of the store as this node sees it: the way to it, its clock, and
// this node's registrations there.
type shard struct {
	*batch.Shard
	heart *fleet.Heart
	clock atomic.Int64 // µs, the part's clock less the node's; 0: never heard
}

// connect makes the ways to all parts of the store.
func (s *Syncer) connect() {
	parts := Sharded(whole{s.store})
	if sharded, ok := s.store.(Sharded); ok {
		parts = sharded
	}
	s.link.parts = parts
	s.link.batcher = batch.New(batch.Config{
		Shards: parts.Lanes(), Now: s.Now, Send: s.store.Settle,
		Timeout: s.cfg.StoreTimeout, CallTimeout: s.callTimeout(),
		Failed: s.failed, Changed: s.cfg.Changed, ShardChanged: s.shardChanged,
	})
	for i, way := range s.link.batcher.Shards() {
		s.link.shards = append(s.link.shards, &shard{Shard: way, heart: fleet.NewHeart(fleet.Config{
			Member: s.cfg.Member, SyncInterval: s.cfg.SyncInterval, Timeout: s.cfg.StoreTimeout, CallTimeout: s.callTimeout(),
			Now: s.Now, Random: s.random.float, Background: s.background,
			Fleets:    func() []*fleet.Fleet { return s.fleetsIn(i) },
			Heartbeat: s.store.Heartbeat,
			Probe:     func(ctx context.Context) error { return parts.Probe(ctx, i) },
			Health:    way, Answered: s.link.slow.watch, Unregistered: s.cfg.Unregistered,
		})})
	}
}

// fleetsIn returns the fleets whose registrations are in a part of the store.
func (s *Syncer) fleetsIn(part int) []*fleet.Fleet {
	var fleets []*fleet.Fleet
	for _, l := range s.Limiters() {
		if s.link.parts.FleetLane(l.name) == part {
			fleets = append(fleets, &l.fleet)
		}
	}
	return fleets
}

// shardOf returns the part of the store that an account is in. It may change: of a settle
// under way, the account knows.
func (s *Syncer) shardOf(limiter, name string) *shard {
	if len(s.link.shards) == 1 {
		return s.link.shards[0]
	}
	part := s.link.parts.Lane(s.store.Account(limiter, name))
	if part < 0 || part >= len(s.link.shards) {
		part = 0
	}
	return s.link.shards[part]
}

// failed reports a settle that failed, or may have. No lock is held.
func (s *Syncer) failed(err error) {
	if s.cfg.Failed != nil {
		s.cfg.Failed(err)
	}
}

// shardChanged is called when a part of the store has become silent, and when it is back:
// then it is time for a probe or a heartbeat.
func (s *Syncer) shardChanged(i int, _ bool) {
	s.link.slow.outage()
	s.link.shards[i].heart.Soon()
}

// hear takes over the clock of a part of the store from a reply.
func (s *Syncer) hear(part *shard, g *slice.Grant, sentAt, now int64) {
	offset := g.Clock - (sentAt+now)/2/1000
	if offset == 0 {
		offset = 1
	}
	part.clock.Store(offset)
	s.reclaim.clock.Store(offset)
}

// names returns the names of limiters.
func names(limiters []*Limiter) []string {
	list := make([]string, len(limiters))
	for i, l := range limiters {
		list[i] = l.name
	}
	return list
}
