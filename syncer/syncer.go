package syncer

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
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
	Changed      func(open bool, cause error) // the breaker turned; must not block

	// Poisoned, if not nil, is told that the store refused one account alone. It
	// must not block; it is called from any goroutine, at every such answer.
	Poisoned func(limiter, key string, err error)

	// Failed, if not nil, is told why a settle was not executed, or may not have been,
	// once for each. It must not block; it is called from any goroutine.
	Failed func(err error)

	// Unregistered, if not nil, is told that the store has refused a limiter's
	// heartbeats a few times in a row, and settles meanwhile. It must not block.
	Unregistered func(limiter string, err error)
}

// Syncer is one node: one loop for all its limiters, and a lane for each part of the
// store.
type Syncer struct {
	// Immutable.
	cfg    Config
	store  Store
	shards Sharded
	lanes  []*shard
	start  time.Time
	ring   *slice.Ring[*Account]

	// Read by every request, written by each tick.
	Dead   slice.Watermark // what Takes check
	coarse atomic.Int64    // ns, the node's clock at the last tick

	Counts NodeCounts

	deadlines deadlines
	timers    agenda
	reclaim   reclaimer
	random    dice

	latency atomic.Int64 // ns, smoothed time of a call
	heardAt atomic.Int64 // ns, when the store last answered a settle or a heartbeat; 0: not yet
	clock   atomic.Int64 // µs, the clock of the part heard last less the node's; 0: never heard
	downs   atomic.Int32 // lanes whose breakers are open; written under turning
	turning sync.Mutex

	mu       sync.Mutex
	limiters map[string]*Limiter
	closing  bool

	kick      chan struct{} // wakes the loop
	stop      chan struct{}
	stopOnce  sync.Once
	tasks     sync.WaitGroup // the loop and what it runs in the background
	syncing   atomic.Bool    // an exchange of marks is under way
	slowBeats atomic.Int32   // heartbeats in a row that took more than half of StoreTimeout
	slowOnce  sync.Once
}

// New starts a node. The store may be down.
func New(cfg Config) *Syncer {
	s := &Syncer{
		cfg:      cfg,
		store:    cfg.Store,
		shards:   whole{cfg.Store},
		start:    time.Now(),
		ring:     slice.NewRing[*Account](cfg.MaxKeys),
		limiters: make(map[string]*Limiter),
		kick:     make(chan struct{}, 1),
		stop:     make(chan struct{}),
	}
	s.Counts.CallTime, s.Counts.BatchSize = newHistogram(callTimes), newHistogram(batchSizes)
	s.latency.Store(int64(cfg.StoreTimeout) / 10)
	s.random.seed(cfg.Member)
	s.deadlines = deadlines{dead: &s.Dead, now: s.Now}
	s.reclaim.s = s
	s.timers.next, s.timers.wake = math.MaxInt64, s.wake
	if shards, ok := cfg.Store.(Sharded); ok {
		s.shards = shards
	}
	for i := range s.shards.Lanes() {
		s.lanes = append(s.lanes, s.newLane(i, s.shards.Lanes()))
	}
	s.tasks.Add(1)
	go s.loop()
	return s
}

// Now returns the node's monotonic clock.
func (s *Syncer) Now() int64 { return int64(time.Since(s.start)) }

// Silence returns how long ago a part of the store last answered a settle or a
// heartbeat of this node, since New before it ever did.
func (s *Syncer) Silence() time.Duration {
	now := s.Now()
	return time.Duration(max(now-s.heardAt.Load(), 0))
}

// wake makes the loop look at the agenda. It never blocks.
func (s *Syncer) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// loop is the node's one owner of time. It never calls the store itself, so
// nothing that the store does can hold it up.
func (s *Syncer) loop() {
	defer s.tasks.Done()
	ticker := time.NewTicker(s.cfg.SyncInterval)
	defer ticker.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.sync()
		case <-s.kick:
		case <-timer.C:
		}
		wait := s.runAgenda()
		for _, l := range s.lanes {
			l.members.tick(s.Now())
			wait = min(wait, l.members.wait(s.Now()))
		}
		timer.Reset(wait)
	}
}

// runAgenda does what is due and returns how long the loop may sleep.
func (s *Syncer) runAgenda() time.Duration {
	due, next := s.timers.take(s.Now())
	for _, a := range due {
		a.update((*key.State).Look)
	}
	if len(due) > 0 {
		s.nudge() // what became due together shares calls
	}
	if next == math.MaxInt64 {
		return time.Hour
	}
	return max(time.Duration(next-s.Now()), key.TimerPause)
}

// sync is the tick: scarcity, what was left for it, sweep.
func (s *Syncer) sync() {
	if !s.allDown() && s.syncing.CompareAndSwap(false, true) {
		holding := s.timers.len() > 0 // before the loop takes what is due
		s.background(func() {
			defer s.syncing.Store(false)
			ctx, cancel := context.WithTimeout(context.Background(), s.patience())
			defer cancel()
			s.reclaim.sync(ctx, holding)
		})
	}
	for _, l := range s.lanes {
		l.dispatch.tick() // where the store is down, what waits is refused
	}
	now := s.Now()
	s.coarse.Store(now)
	// Ticks compare modulo 2^32: a watermark that no lease moves must not fall behind.
	s.Dead.Pass(slice.TickAt(now))
	s.ring.Sweep(s.sweepShare())
}

// nudge sends what was left for later, where the store is there.
func (s *Syncer) nudge() {
	for _, l := range s.lanes {
		if !l.down() {
			l.dispatch.nudge()
		}
	}
}

// tick returns a sync interval, jittered upwards.
func (s *Syncer) tick() int64 {
	return int64(float64(s.cfg.SyncInterval) * (1 + 0.2*s.random.float()))
}

// sweepShare is how many keys a tick looks at, so that all are seen about once
// a minute and no tick takes long.
func (s *Syncer) sweepShare() int {
	perTick := int(int64(s.ring.Len()) * int64(s.cfg.SyncInterval) / int64(time.Minute))
	return min(perTick+16, 4096)
}

// background runs a task that may block on the store; Shutdown waits for it.
func (s *Syncer) background(task func()) {
	s.tasks.Go(task)
}

// warnSlow says once that StoreTimeout leaves no room for two round trips, when
// that was so three heartbeats in a row: a single one may have met a pause.
func (s *Syncer) warnSlow(rtt int64) {
	if 2*rtt <= int64(s.cfg.StoreTimeout) {
		s.slowBeats.Store(0)
		return
	}
	if s.slowBeats.Add(1) < 3 {
		return
	}
	s.slowOnce.Do(func() {
		s.cfg.Logger.Warn("hybrid: StoreTimeout is shorter than two round trips to the store",
			"StoreTimeout", s.cfg.StoreTimeout, "roundTrip", time.Duration(rtt))
	})
}
