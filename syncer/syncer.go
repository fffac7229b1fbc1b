package syncer

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/internal/batch"
	"github.com/hybridlimit/hybrid/slice"
)

// Config is what a Syncer is made of. All fields are required and valid.
type Config struct {
	Store        Store
	SyncInterval time.Duration
	StoreTimeout time.Duration
	Member       string // unique among all nodes
	Servers      int    // least fleet size
	MaxKeys      int
	Logger       *slog.Logger
	Changed      func(open bool, cause error) // the breaker opened or closed; must not block

	// Poisoned, if not nil, hears that the store refused one account alone. It must not
	// block; it is called from any goroutine, at every such answer.
	Poisoned func(limiter, key string, err error)

	// Failed, if not nil, hears why a settle was not executed, or may not have been, once
	// for each. It must not block; it is called from any goroutine.
	Failed func(err error)

	// Unregistered, if not nil, hears that the store has refused a limiter's heartbeats a
	// few times in a row, and settles meanwhile. It must not block.
	Unregistered func(limiter string, err error)
}

// Syncer is one node: one loop for all its limiters, and a way to each part of the store.
type Syncer struct {
	// Immutable.
	cfg   Config
	store Store
	link  link
	start time.Time
	ring  *slice.Ring[*Account]

	// Read by every request, written by each tick.
	Dead   slice.Watermark // what Takes check
	coarse atomic.Int64    // ns, the node's clock at the last tick

	expiry  expiryTimer
	timers  timerQueue
	reclaim reclaimer
	random  random

	registry registry
	loop     loop
}

// registry is the node's limiters by name.
type registry struct {
	mu      sync.Mutex
	byName  map[string]*Limiter
	closing bool
}

// New starts a node. The store may be down.
func New(cfg Config) *Syncer {
	s := &Syncer{cfg: cfg, store: cfg.Store, start: time.Now(), ring: slice.NewRing[*Account](cfg.MaxKeys)}
	s.registry.byName = make(map[string]*Limiter)
	s.random.seed(cfg.Member)
	s.expiry = expiryTimer{expiredUpTo: &s.Dead, now: s.Now}
	s.reclaim.s = s
	s.link.slow = slowWatch{timeout: cfg.StoreTimeout, logger: cfg.Logger, now: s.Now}
	s.connect()
	s.loop.start(s)
	return s
}

// Now returns the node's monotonic clock.
func (s *Syncer) Now() int64 { return int64(time.Since(s.start)) }

// leastCallTimeout is how long a settle may at least stay in flight before its outcome
// counts as unknown. It is longer than requests usually wait, or every hiccup of the
// store would put all slices in flight in doubt.
const leastCallTimeout = time.Second

// callTimeout is how long a call may take.
func (s *Syncer) callTimeout() time.Duration { return max(leastCallTimeout, s.cfg.StoreTimeout) }

// Silence returns how long ago a part of the store last answered a settle or a heartbeat
// of this node, since New before it ever did.
func (s *Syncer) Silence() time.Duration {
	now := s.Now()
	return time.Duration(max(now-s.link.batcher.AnsweredAt(), 0))
}

// Down reports whether the store, or a part of it, is silent.
func (s *Syncer) Down() bool { return s.link.batcher.Down() }

// Calls returns the counts of calls of the store.
func (s *Syncer) Calls() *batch.Counts { return &s.link.batcher.Counts }

// ExchangeErrors returns how many exchanges of which keys are scarce have failed.
func (s *Syncer) ExchangeErrors() uint64 { return s.reclaim.errors.Load() }

// slowWatch warns once that StoreTimeout leaves no room for two round trips, when that
// was so for three heartbeats in a row: a single one may have met a pause.
type slowWatch struct {
	timeout time.Duration
	logger  *slog.Logger
	now     func() int64
	from    atomic.Int64 // ns, when the backlog of an outage is worked off
	beats   atomic.Int32
	once    sync.Once
}

func (w *slowWatch) watch(roundTrip int64) {
	if 2*roundTrip <= int64(w.timeout) || w.now() < w.from.Load() {
		w.beats.Store(0)
		return
	}
	if w.beats.Add(1) < 3 {
		return
	}
	w.once.Do(func() {
		w.logger.Warn("hybrid: StoreTimeout is shorter than two round trips to the store",
			"StoreTimeout", w.timeout, "roundTrip", time.Duration(roundTrip))
	})
}

// outage says that an outage has begun or ended. Its backlog says nothing about round trips:
// heartbeats come quickly then, and wait in it.
func (w *slowWatch) outage() {
	w.from.Store(w.now() + int64(5*time.Second))
}
