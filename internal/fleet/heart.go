package fleet

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Config is what a Heart is made of. All fields are required but Unregistered.
type Config struct {
	Member       string
	SyncInterval time.Duration
	Timeout      time.Duration // StoreTimeout
	CallTimeout  time.Duration
	Now          func() int64
	Random       func() float64 // in [0, 1)
	Background   func(task func())

	Fleets    func() []*Fleet // of limiters whose registrations are in this part of the store
	Heartbeat func(ctx context.Context, member string, ttl time.Duration, fleets []*slice.Fleet)
	Probe     func(ctx context.Context) error // fails unless this part would execute settles
	Health    Health

	Slow         func(roundTrip int64)           // is given the time of each heartbeat in ns
	Unregistered func(limiter string, err error) // the store refuses a limiter's heartbeats, and settles
}

// Health is the breaker of a part of the store.
type Health interface {
	Down() bool
	Failing(now int64, err error)
	TimedOut(now int64) // a call was not answered in time
	Answered(sentAt, now int64)
	SettledAt() int64
}

// Heart keeps this node's registrations in one part of the store alive, and probes that
// part while it is silent. Beat belongs to the node's loop.
type Heart struct {
	cfg     Config
	out     atomic.Int32 // calls that the client has not returned from
	beating atomic.Bool  // a heartbeat is under way
	due     atomic.Int64 // ns, the next heartbeat
}

// NewHeart returns a Heart that beats at once.
func NewHeart(cfg Config) *Heart { return &Heart{cfg: cfg} }

// Soon makes the next Beat send a heartbeat: a limiter was added, or the breaker has changed.
func (h *Heart) Soon() { h.due.Store(0) }

// mostDoublings bounds the time between probes to 32 ticks.
const mostDoublings = 5

// Beat sends a heartbeat if one is due. While the store is silent each tick probes,
// jittered: only that closes the breaker.
func (h *Heart) Beat(now int64) {
	if now < h.due.Load() || !h.beating.CompareAndSwap(false, true) {
		return
	}
	wait := int64(float64(heartbeatEvery) * (0.8 + 0.4*h.cfg.Random()))
	if h.cfg.Health.Down() { // the more rarely the more probes hang, beside the last one, which may be about to return
		tick := int64(float64(h.cfg.SyncInterval) * (1 + 0.2*h.cfg.Random()))
		wait = min(wait, tick<<min(max(h.out.Load()-1, 0), mostDoublings))
	}
	h.due.Store(now + wait)
	h.cfg.Background(func() {
		defer h.beating.Store(false)
		h.beat()
	})
}

// Wait returns how long until the next heartbeat is due, in ns; negative if it is.
func (h *Heart) Wait(now int64) int64 { return h.due.Load() - now }

// fleetsPerBeat bounds one call: the breaker judges its time.
const fleetsPerBeat = 32

// beat registers this node with all fleets of its part and takes over what they look
// like; where the part is silent, once a probe has found it back.
func (h *Heart) beat() {
	if h.cfg.Health.Down() {
		h.call(func(ctx context.Context, _ int64) error { return h.cfg.Probe(ctx) })
	}
	if h.cfg.Health.Down() {
		return
	}
	for part := range slices.Chunk(h.cfg.Fleets(), fleetsPerBeat) {
		h.call(func(ctx context.Context, sentAt int64) error { return h.register(ctx, part, sentAt) })
	}
}

// call calls the store and lets the breaker judge it.
func (h *Heart) call(do func(ctx context.Context, sentAt int64) error) {
	now, health := h.cfg.Now, h.cfg.Health
	sentAt := now()
	alive := time.AfterFunc(h.cfg.Timeout, func() { health.TimedOut(now()) })
	ctx, cancel := context.WithTimeout(context.Background(), h.patience())
	defer cancel()
	h.out.Add(1)
	done := make(chan error, 1)
	go func() {
		defer h.out.Add(-1)
		done <- do(ctx, sentAt)
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	inTime, end := alive.Stop(), now()
	switch {
	case err == nil:
		health.Answered(sentAt, end)
		h.cfg.Slow(end - sentAt)
	case errors.Is(err, errRefused):
		// Settles may be executed all the same, and if not they will say so.
	case inTime:
		health.Failing(end, err)
	}
}

// errRefused is a heartbeat that the store answered and did not execute.
var errRefused = errors.New("hybrid: the heartbeat was refused")

// register sends one heartbeat. It fails if no fleet's answer says that the store is
// there: one that cannot be read alone says nothing of the others.
func (h *Heart) register(ctx context.Context, fleets []*Fleet, sentAt int64) (err error) {
	answers := make([]*slice.Fleet, len(fleets))
	for i, f := range fleets {
		answers[i] = &slice.Fleet{Limiter: f.limiter}
	}
	h.cfg.Heartbeat(ctx, h.cfg.Member, TTL, answers)
	if ctx.Err() != nil {
		return ctx.Err() // others may have been sent meanwhile
	}
	answered, refused := false, false
	for i, answer := range answers {
		answered = answered || answer.Err == nil || answer.Lone
		refused = refused || answer.Refused
		if answer.Err == nil {
			fleets[i].refusals.Store(nil)
			fleets[i].joined(answer, sentAt, h.cfg.Now())
			continue
		}
		err = answer.Err
		if fleets[i].refused(sentAt, h.cfg.Health) && h.cfg.Unregistered != nil {
			h.cfg.Unregistered(fleets[i].limiter, err)
		}
	}
	switch {
	case answered:
		return nil
	case refused:
		return errRefused
	}
	return err
}

// patience is how long a heartbeat may take. A probe that gets no answer must not stand
// in the way of the next one.
func (h *Heart) patience() time.Duration {
	if h.cfg.Health.Down() {
		return max(2*h.cfg.Timeout, h.cfg.SyncInterval)
	}
	return h.cfg.CallTimeout
}
