package syncer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Sharded is a Store of which parts may fail alone, such as the shards of a
// cluster. A Store that is not Sharded is one part. None of its methods but Probe
// may block.
type Sharded interface {
	// Lanes is how many parts there are, at least 1.
	Lanes() int
	// Lane is the part that an account is in, 0 to Lanes − 1. It may change.
	Lane(account string) int
	// FleetLane is the part that a limiter's registrations are in.
	FleetLane(limiter string) int
	// Probe fails unless the part would execute settles.
	Probe(ctx context.Context, lane int) error
}

// whole is a Store in one part, of which nothing is known but that it is a Store.
type whole struct{ store Store }

func (whole) Lanes() int           { return 1 }
func (whole) Lane(string) int      { return 0 }
func (whole) FleetLane(string) int { return 0 }

// Probe registers in a fleet of nobody's.
func (w whole) Probe(ctx context.Context, _ int) error {
	f := &slice.Fleet{}
	w.store.Heartbeat(ctx, "probe", time.Second, []*slice.Fleet{f})
	return f.Err
}

// lane is the way to one part of the store. It has a line of settles, a breaker
// and heartbeats of its own: what hangs or fails there is nobody else's matter.
type shard struct {
	index     int
	dispatch  dispatch
	breaker   breaker
	members   members
	clock     atomic.Int64 // µs, this part's less the node's; 0: never heard
	settledAt atomic.Int64 // ns, when it last executed settles
}

func (s *Syncer) newLane(index, lanes int) *shard {
	l := &shard{index: index}
	l.dispatch.s, l.dispatch.lane = s, l
	l.dispatch.share = shareOf(lanes)
	l.dispatch.quota = l.dispatch.share.own
	l.breaker.timeout, l.breaker.changed = int64(s.cfg.StoreTimeout), l.turned
	l.members.s, l.members.lane = s, l
	return l
}

// down reports whether nobody waits for this part now.
func (l *shard) down() bool { return l.breaker.open.Load() }

// turned takes note of a change of the breaker.
func (l *shard) turned(open bool, cause error) {
	s := l.dispatch.s
	if !open {
		back := max(s.Now(), 1)
		l.dispatch.backAt.Store(back)
		time.AfterFunc(s.cfg.StoreTimeout, func() { l.dispatch.giveUpOn(back) })
	}
	l.members.soon()
	s.turned(open, cause)
}

// laneOf returns the way to an account.
func (s *Syncer) shardOf(limiter, key string) *shard {
	if len(s.lanes) == 1 {
		return s.lanes[0]
	}
	lane := s.shards.Lane(s.store.Account(limiter, key))
	if lane < 0 || lane >= len(s.lanes) {
		lane = 0
	}
	return s.lanes[lane]
}

func (l *shard) failing(now int64, err error) { l.breaker.failing(now, err) }

// hear takes over the clock of a part from a reply.
func (l *shard) hear(g *slice.Grant, sentAt, now int64) {
	offset := g.Clock - (sentAt+now)/2/1000
	if offset == 0 {
		offset = 1
	}
	l.clock.Store(offset)
	l.dispatch.s.clock.Store(offset)
}

// turned reports that the first part of the store has failed, or that the last
// one is back.
func (s *Syncer) turned(open bool, cause error) {
	s.turning.Lock()
	defer s.turning.Unlock()
	switch {
	case open && s.downs.Add(1) == 1:
		s.Counts.BreakerOpens.Add(1)
		s.cfg.Changed(true, cause)
	case !open && s.downs.Add(-1) == 0:
		s.cfg.Changed(false, nil)
	}
}

// Down reports whether nobody waits for the store, or for a part of it, now.
func (s *Syncer) Down() bool { return s.downs.Load() > 0 }

// allDown reports whether nobody waits for any part of the store.
func (s *Syncer) allDown() bool { return int(s.downs.Load()) == len(s.lanes) }
