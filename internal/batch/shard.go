package batch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Shard is the way to one part of the store: a queue of jobs, the calls under way, and a
// breaker.
//
// A job that no request waits for travels with the next call that has room for it, or
// else with the tick: most calls then carry several accounts.
//
// Lock order: a job's own lock before mu.
type Shard struct {
	b       *Batcher
	index   int
	breaker breaker
	limits  limits

	settledAt atomic.Int64 // ns, when it last executed settles
	backAt    atomic.Int64 // ns, when the last outage ended; 0: there was none

	mu         sync.Mutex
	ready      []queued
	background []queued      // no request waits for these
	quota      int           // calls that may go with nothing but these until the next tick
	callers    int           // goroutines that call the store
	idle       chan struct{} // closed when callers falls to 0, if it is waited for
	calls      []*call       // under way
}

// queued is a job in line. One that was queued in the background and that a request waits
// for now stands in line twice: the job knows that its place in the background is void.
type queued struct {
	job        Job
	background bool
}

const (
	mostCalls      = 8  // calls under way at once
	mostBatch      = 64 // accounts in one call
	mostBackground = 16 // calls per tick that carry nothing but background jobs

	// For this long after an outage it is one such call per tick. On each node, each key
	// that was asked for has something to tell: a store that is just back would be
	// overrun. Requests are served first, and take the debts of their keys along.
	recoveryPeriod = int64(time.Minute)
)

// limits are one shard's part of what a node may do. A shard must be able to go on beside
// others that hang, so each has two calls at least.
type limits struct {
	calls      int // under way at once
	background int // calls per tick that carry nothing but background jobs
	recovering int // accounts in such a call after an outage
}

func limitsOf(shards int) limits {
	return limits{calls: max(mostCalls/shards, 2), background: max(mostBackground/shards, 1), recovering: max(mostBatch/shards, 1)}
}

func newShard(b *Batcher, index int) *Shard {
	s := &Shard{b: b, index: index, limits: limitsOf(b.cfg.Shards)}
	s.quota = s.limits.background
	s.breaker.timeout, s.breaker.changed = int64(b.cfg.Timeout), s.changed
	return s
}

// Down reports whether the breaker is open: no request waits for this part of the store.
func (s *Shard) Down() bool { return s.breaker.open.Load() }

// Failed records a call that failed.
func (s *Shard) Failed(now int64, err error) { s.breaker.failed(now, err) }

// TimedOut records a call that a request stopped waiting for.
func (s *Shard) TimedOut(now int64) { s.breaker.failed(now, ErrTimeout) }

// SettledAt returns when this shard last executed settles; 0: not yet.
func (s *Shard) SettledAt() int64 { return s.settledAt.Load() }

// Answered records a call that the store has answered.
func (s *Shard) Answered(sentAt, now int64) {
	b := s.b
	b.answeredAt.Store(now)
	b.latency.Store((7*b.latency.Load() + now - sentAt) / 8)
	s.breaker.answered(now, now-sentAt)
}

// changed follows a change of the breaker, whose lock is held.
func (s *Shard) changed(down bool, cause error) {
	if !down {
		back := max(s.b.cfg.Now(), 1)
		s.backAt.Store(back)
		time.AfterFunc(s.b.cfg.Timeout, func() { s.giveUpOn(back) })
	}
	s.b.cfg.ShardChanged(s.index, down)
	s.b.changed(down, cause)
}

// Submit queues a job that a request waits for. It never blocks.
func (s *Shard) Submit(j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, queued{job: j})
	s.callLocked()
}

// SubmitLater queues a job that no request waits for.
func (s *Shard) SubmitLater(j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.background = append(s.background, queued{job: j, background: true})
}

// tick allows the next background calls, and sends what waits.
func (s *Shard) tick() {
	s.mu.Lock()
	s.quota = s.limits.background
	if s.recovering() {
		s.quota = 1
	}
	s.mu.Unlock()
	s.Flush()
}

// recovering reports whether an outage has ended lately.
func (s *Shard) recovering() bool {
	back := s.backAt.Load()
	return back != 0 && s.b.cfg.Now()-back < recoveryPeriod
}

// Flush sends what waits in the background, within the quota.
func (s *Shard) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range min((len(s.background)+mostBatch-1)/mostBatch, s.quota) {
		s.callLocked()
	}
}

// callLocked adds a goroutine that calls the store.
func (s *Shard) callLocked() {
	if s.callers < s.limits.calls {
		s.callers++
		go s.run()
	}
}

// run calls the store until nothing is ready.
func (s *Shard) run() {
	for {
		batch := s.take()
		if batch == nil {
			return
		}
		if !s.send(batch) {
			return // the call was given up, and its place with it
		}
	}
}

// take returns what goes with the next call: first the jobs that requests wait for, then
// background jobs while there is room. Alone, these go only within the quota.
func (s *Shard) take() []queued {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := min(len(s.ready), mostBatch)
	room := mostBatch - waited
	switch {
	case waited > 0:
	case s.quota == 0:
		room = 0
	case s.recovering():
		room = min(room, s.limits.recovering)
	}
	others := min(len(s.background), room)
	if waited == 0 && others > 0 {
		s.quota--
	}
	if waited+others == 0 {
		s.finishLocked()
		return nil
	}
	batch := append(s.ready[:waited:waited], s.background[:others]...)
	s.ready, s.background = s.ready[waited:], s.background[others:]
	return batch
}

// replace lets another call take the place of one that was given up.
func (s *Shard) replace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked()
	if len(s.ready) > 0 {
		s.callLocked()
	}
}

// finishLocked ends a goroutine that found nothing to send.
func (s *Shard) finishLocked() {
	s.callers--
	if s.callers == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// quiet returns a channel that is closed once no call is under way.
func (s *Shard) quiet() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == nil {
		s.idle = make(chan struct{})
		if s.callers == 0 {
			done := s.idle
			close(done)
			s.idle = nil
			return done
		}
	}
	return s.idle
}

// record notes how a call went. A failure of one account alone, such as a key of the
// wrong type, says nothing about the store.
func (s *Shard) record(batch []*slice.Settle, sentAt int64) {
	now := s.b.cfg.Now()
	var err error
	for _, st := range batch {
		if st.Outcome == slice.Ran || st.Lone {
			s.settledAt.Store(now)
			s.Answered(sentAt, now)
			return
		}
		err = st.Err
	}
	s.breaker.failed(now, err)
}
