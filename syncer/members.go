package syncer

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Membership: each limiter has a registry of its live nodes in the store. Its
// size M divides floors, grants and fallback shares.
const (
	heartbeatEvery = time.Second
	memberTTL      = 5 * time.Second
	// A registration is trusted here for less than it lasts in the store, so
	// that a node whose place was given away does not use its floor any more.
	memberTrust = memberTTL - time.Second
)

// members keeps this node's registrations. Its fields belong to the loop.
type members struct {
	s       *Syncer
	beating atomic.Bool  // a heartbeat is under way
	due     atomic.Int64 // ns, the next heartbeat
}

// soon makes the next tick send a heartbeat: a limiter was added.
func (m *members) soon() { m.due.Store(0) }

// tick sends a heartbeat if one is due. While the breaker is open each tick
// sends one, jittered: it is the probe that closes the breaker.
func (m *members) tick(now int64) {
	if now < m.due.Load() || !m.beating.CompareAndSwap(false, true) {
		return
	}
	wait := m.s.dice.jitter(int64(heartbeatEvery))
	if m.s.breaker.open.Load() {
		wait = min(wait, m.s.tick())
	}
	m.due.Store(now + wait)
	m.s.background(func() {
		defer m.beating.Store(false)
		m.beat()
	})
}

// wait returns how long the loop may sleep before the next heartbeat.
func (m *members) wait(now int64) time.Duration {
	return max(time.Duration(m.due.Load()-now), agendaPause)
}

// fleetsPerBeat bounds one call: the breaker judges its time.
const fleetsPerBeat = 32

// beat registers this node with all fleets and takes over what they look like.
func (m *members) beat() {
	for part := range slices.Chunk(m.s.Limiters(), fleetsPerBeat) {
		m.beatSome(part)
	}
}

func (m *members) beatSome(limiters []*Limiter) {
	s := m.s
	fleets := make([]*slice.Fleet, len(limiters))
	for i, l := range limiters {
		fleets[i] = &slice.Fleet{Limiter: l.name}
	}
	sentAt := s.Now()
	alive := time.AfterFunc(s.cfg.StoreTimeout, func() { s.breaker.failing(s.Now(), errTimeout) })
	ctx, cancel := context.WithTimeout(context.Background(), m.patience())
	defer cancel()
	s.store.Heartbeat(ctx, s.cfg.Member, memberTTL, fleets)
	inTime := alive.Stop()
	now := s.Now()
	answered, err := false, error(nil)
	for i, f := range fleets {
		answered = answered || f.Err == nil || f.Lone
		if f.Err != nil {
			err = f.Err
			continue
		}
		limiters[i].joined(f, sentAt, now)
	}
	// A part of the store that is down (a shard, one key) fails the calls that
	// need it; those that do not go on.
	switch {
	case answered:
		s.latency.Store((7*s.latency.Load() + now - sentAt) / 8)
		s.breaker.succeeded(now, now-sentAt)
		s.warnSlow(now - sentAt)
	case inTime:
		s.breaker.failing(now, err)
	}
}

// patience is how long a heartbeat may take. A probe that gets no answer must not
// stand in the way of the next one.
func (m *members) patience() time.Duration {
	if m.s.breaker.open.Load() {
		return max(2*m.s.cfg.StoreTimeout, m.s.cfg.SyncInterval)
	}
	return m.s.patience()
}

// joined takes over a heartbeat's answer. The floor of a new registration
// starts empty once it is one TTL old: by then every other node has made room.
func (l *Limiter) joined(f *slice.Fleet, sentAt, now int64) {
	roster := f.Members
	l.roster.Store(&roster)
	l.history.Set(now, max(l.s.cfg.Servers, len(roster), 1))
	lapsed := sentAt > l.floorUntil.Load()
	if f.Joined || lapsed {
		from := now + int64(memberTTL)
		l.floorFrom.Store(from)
		l.fresh.Start(from)
	}
	l.floorUntil.Store(sentAt + int64(memberTrust))
}

// floorOpen reports whether this node may use floors of this limiter now.
func (l *Limiter) floorOpen(now int64) bool {
	return now >= l.floorFrom.Load() && now < l.floorUntil.Load()
}

// tick returns a sync interval, jittered upwards.
func (s *Syncer) tick() int64 {
	return int64(float64(s.cfg.SyncInterval) * (1 + 0.2*s.dice.float()))
}
