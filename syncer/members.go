package syncer

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
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

// members keeps this node's registrations in one part of the store. Its fields
// belong to the loop.
type members struct {
	s       *Syncer
	lane    *shard
	out     atomic.Int32 // calls that the client has not returned from
	beating atomic.Bool  // a heartbeat is under way
	due     atomic.Int64 // ns, the next heartbeat
}

// soon makes the next tick send a heartbeat: a limiter was added.
func (m *members) soon() { m.due.Store(0) }

// tick sends a heartbeat if one is due. While the breaker is open each tick
// probes, jittered: only that closes the breaker.
func (m *members) tick(now int64) {
	if now < m.due.Load() || !m.beating.CompareAndSwap(false, true) {
		return
	}
	wait := m.s.random.jitter(int64(heartbeatEvery))
	if m.lane.down() { // the more rarely the more probes hang, beside the last one, which may be about to return
		wait = min(wait, m.s.tick()<<min(max(m.out.Load()-1, 0), mostDoublings))
	}
	m.due.Store(now + wait)
	m.s.background(func() {
		defer m.beating.Store(false)
		m.beat()
	})
}

// mostDoublings bounds the time between probes to 32 ticks.
const mostDoublings = 5

// wait returns how long the loop may sleep before the next heartbeat.
func (m *members) wait(now int64) time.Duration {
	return max(time.Duration(m.due.Load()-now), key.TimerPause)
}

// fleetsPerBeat bounds one call: the breaker judges its time.
const fleetsPerBeat = 32

// beat registers this node with all fleets of its part and takes over what they
// look like; where the part is down, once a probe has found it back.
func (m *members) beat() {
	if m.lane.down() {
		m.call(func(ctx context.Context, _ int64) error { return m.s.shards.Probe(ctx, m.lane.index) })
	}
	if m.lane.down() {
		return
	}
	for part := range slices.Chunk(m.limiters(), fleetsPerBeat) {
		m.call(func(ctx context.Context, sentAt int64) error { return m.register(ctx, part, sentAt) })
	}
}

// limiters returns the limiters whose fleets are in this part of the store.
func (m *members) limiters() []*Limiter {
	return slices.DeleteFunc(m.s.Limiters(), func(l *Limiter) bool {
		return m.s.shards.FleetLane(l.name) != m.lane.index
	})
}

// call calls the store and lets the breaker judge it.
func (m *members) call(do func(ctx context.Context, sentAt int64) error) {
	s, b := m.s, &m.lane.breaker
	sentAt := s.Now()
	alive := time.AfterFunc(s.cfg.StoreTimeout, func() { b.failing(s.Now(), ErrTimeout) })
	ctx, cancel := context.WithTimeout(context.Background(), m.patience())
	defer cancel()
	m.out.Add(1)
	err := within(ctx, func() error {
		defer m.out.Add(-1)
		return do(ctx, sentAt)
	})
	inTime, now := alive.Stop(), s.Now()
	switch {
	case err == nil:
		m.lane.answered(sentAt, now)
		s.warnSlow(now - sentAt)
	case errors.Is(err, errRefused):
		// Settles may be executed all the same, and if not they will say so.
	case inTime:
		b.failing(now, err)
	}
}

// errRefused is a heartbeat that the store answered and did not execute.
var errRefused = errors.New("hybrid: the heartbeat was refused")

// register sends one heartbeat. It fails if no fleet's answer says that the store
// is there: one that cannot be read alone says nothing of the others.
func (m *members) register(ctx context.Context, limiters []*Limiter, sentAt int64) (err error) {
	fleets := make([]*slice.Fleet, len(limiters))
	for i, l := range limiters {
		fleets[i] = &slice.Fleet{Limiter: l.name}
	}
	m.s.store.Heartbeat(ctx, m.s.cfg.Member, memberTTL, fleets)
	if ctx.Err() != nil {
		return ctx.Err() // others may have been sent meanwhile
	}
	answered, refused := false, false
	for i, f := range fleets {
		answered = answered || f.Err == nil || f.Lone
		refused = refused || f.Refused
		if f.Err != nil {
			err = f.Err
			m.refused(limiters[i], sentAt, err)
			continue
		}
		limiters[i].fleet.refusals.Store(nil)
		limiters[i].fleet.joined(f, sentAt, m.s.Now())
	}
	switch {
	case answered:
		return nil
	case refused:
		return errRefused
	}
	return err
}

// refused notes a heartbeat that failed. Where the store has done other things since
// the first of a few that failed in a row, it is its user's rights or a key of another
// type, and nothing else tells.
func (m *members) refused(l *Limiter, sentAt int64, err error) {
	row := l.fleet.refusals.Load()
	if row == nil || m.lane.down() {
		row = &refusals{since: sentAt}
	}
	row = &refusals{since: row.since, count: row.count + 1, told: row.told}
	if row.count >= fewRefusals && !row.told && m.lane.settledAt.Load() > row.since && m.s.cfg.Unregistered != nil {
		row.told = true
		m.s.cfg.Unregistered(l.name, err)
	}
	l.fleet.refusals.Store(row)
}

// refusals is a row of heartbeats of a limiter that failed.
type refusals struct {
	since int64 // ns, when the first was sent
	count int
	told  bool
}

const fewRefusals = 5

// patience is how long a heartbeat may take. A probe that gets no answer must not
// stand in the way of the next one.
func (m *members) patience() time.Duration {
	if m.lane.down() {
		return max(2*m.s.cfg.StoreTimeout, m.s.cfg.SyncInterval)
	}
	return m.s.patience()
}
