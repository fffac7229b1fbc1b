package fleet

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Config is what a Heart is made of. All fields but Unregistered are required. Callbacks
// must not block, Heartbeat and Probe aside.
type Config struct {
	Member       string
	SyncInterval time.Duration
	Timeout      time.Duration // how long a request waits: what takes longer is a failure
	CallTimeout  time.Duration // after which a heartbeat counts as lost
	Now          func() int64
	Random       func() float64    // in [0, 1)
	Background   func(task func()) // runs a task that may block

	Fleets    func() []*Fleet // that register in this shard
	Heartbeat func(ctx context.Context, member string, ttl time.Duration, fleets []*slice.Fleet)
	Probe     func(ctx context.Context) error // fails unless this shard would execute settles
	Health    Health

	Answered     func(roundTrip int64)           // a heartbeat was answered, after roundTrip ns
	Unregistered func(limiter string, err error) // the store refuses a limiter's heartbeats, and executes settles
}

// Health is how well a shard is: its breaker, which heartbeats open and close like any
// other call.
type Health interface {
	Down() bool                  // the breaker is open
	Failed(now int64, err error) // a call failed
	TimedOut(now int64)          // a call was not answered in time
	Answered(sentAt, now int64)  // a call was answered
	SettledAt() int64            // when settles were last executed
}

// Heart keeps this node's registrations in one shard alive, and probes the shard while it
// is down. Beat and Wait belong to the node's loop.
type Heart struct {
	cfg     Config
	out     atomic.Int32 // calls that the client has not returned from
	beating atomic.Bool  // a heartbeat is under way
	due     atomic.Int64 // ns, the next heartbeat
}

// NewHeart returns a Heart that beats at once.
func NewHeart(cfg Config) *Heart { return &Heart{cfg: cfg} }

// Soon makes the next Beat send a heartbeat: a limiter was added, or the breaker has
// opened or closed.
func (h *Heart) Soon() { h.due.Store(0) }

// mostDoublings bounds the time between probes to 32 ticks.
const mostDoublings = 5

// Beat sends a heartbeat if one is due, about once a second. While the shard is down about
// every tick probes, because only that closes the breaker. The more probes hang, the
// rarer they are; one that hangs alone does not count, as it may be about to return.
func (h *Heart) Beat(now int64) {
	if now < h.due.Load() || !h.beating.CompareAndSwap(false, true) {
		return
	}
	wait := int64(float64(heartbeatEvery) * (0.8 + 0.4*h.cfg.Random()))
	if h.cfg.Health.Down() {
		tick := int64(float64(h.cfg.SyncInterval) * (1 + 0.2*h.cfg.Random()))
		wait = min(wait, tick<<min(max(h.out.Load()-1, 0), mostDoublings))
	}
	h.due.Store(now + wait)
	h.cfg.Background(func() {
		defer h.beating.Store(false)
		h.beat()
	})
}

// Wait returns in how many ns the next heartbeat is due.
func (h *Heart) Wait(now int64) int64 { return h.due.Load() - now }

// fleetsPerBeat bounds one call, whose time counts for the breaker.
const fleetsPerBeat = 32

// beat registers this node with all fleets of the shard and takes over what they look
// like; while the shard is down, only after a probe has closed the breaker.
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

// call calls the store and records how it went.
func (h *Heart) call(do func(ctx context.Context, sentAt int64) error) {
	now, health := h.cfg.Now, h.cfg.Health
	sentAt := now()
	alive := time.AfterFunc(h.cfg.Timeout, func() { health.TimedOut(now()) })
	ctx, cancel := context.WithTimeout(slice.Background, h.callTimeout())
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
		h.cfg.Answered(end - sentAt)
	case errors.Is(err, errRefused):
		// The shard may execute settles all the same; if not, they will fail.
	case inTime:
		health.Failed(end, err)
	}
}

// errRefused is a heartbeat that the store answered and did not execute.
var errRefused = errors.New("hybrid: the heartbeat was refused")

// register sends one heartbeat. It fails if no fleet's answer shows that the store is
// there: a registry that is unreadable says nothing of the others.
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

// callTimeout is how long a heartbeat may take. A probe without an answer must not hold up
// the next one for long.
func (h *Heart) callTimeout() time.Duration {
	if h.cfg.Health.Down() {
		return max(2*h.cfg.Timeout, h.cfg.SyncInterval)
	}
	return h.cfg.CallTimeout
}
