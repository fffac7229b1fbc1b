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
	breaker Breaker
	quotas  quotas

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

// queued is a job in line. One that was queued in the background and is in a hurry now
// stands in line twice; it knows that the later place is void.
type queued struct {
	job        Job
	background bool
}

const (
	mostCalls = 8  // calls under way at once
	mostBatch = 64 // accounts in one call
	ownCalls  = 16 // calls per tick that carry nothing but background jobs
	// After an outage it is one such call per tick for this long: each key that was asked for has
	// something to tell, on each node, and a store that is just back would be overrun.
	// Requests are served first, and take the debts of their keys along.
	recoveryPeriod = int64(time.Minute)
)

// quotas is what one of several parts of the store gets of what a node may do. A part
// must be able to go on beside others that hang, so each has two calls at least.
type quotas struct {
	calls      int // under way at once
	own        int // background calls per tick
	recovering int // accounts in such a call after an outage
}

func quotasOf(parts int) quotas {
	return quotas{calls: max(mostCalls/parts, 2), own: max(ownCalls/parts, 1), recovering: max(mostBatch/parts, 1)}
}

func newShard(b *Batcher, parts int) *Shard {
	s := &Shard{b: b, quotas: quotasOf(parts)}
	s.quota = s.quotas.own
	s.breaker.timeout, s.breaker.changed = int64(b.cfg.Timeout), s.changed
	return s
}

// Down reports whether this part of the store is silent: no request waits for it.
func (s *Shard) Down() bool { return s.breaker.open.Load() }

// Failing records a call that failed, or that a request stopped waiting for.
func (s *Shard) Failing(now int64, err error) { s.breaker.Failing(now, err) }

// TimedOut records a call that was not answered in time.
func (s *Shard) TimedOut(now int64) { s.breaker.Failing(now, ErrTimeout) }

// SettledAt returns when this part last executed settles.
func (s *Shard) SettledAt() int64 { return s.settledAt.Load() }

// Answered takes note of a call that the store has answered.
func (s *Shard) Answered(sentAt, now int64) {
	b := s.b
	b.answeredAt.Store(now)
	b.latency.Store((7*b.latency.Load() + now - sentAt) / 8)
	s.breaker.Succeeded(now, now-sentAt)
}

// changed takes note that the breaker has opened or closed.
func (s *Shard) changed(open bool, cause error) {
	if !open {
		back := max(s.b.cfg.Now(), 1)
		s.backAt.Store(back)
		time.AfterFunc(s.b.cfg.Timeout, func() { s.giveUpOn(back) })
	}
	s.b.changed(open, cause)
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
	s.quota = s.quotas.own
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
	if s.callers < s.quotas.calls {
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

// take returns what goes with the next call: jobs that are waited for first, and others
// as far as there is room. By themselves others go only within the quota.
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
		room = min(room, s.quotas.recovering)
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

// judge tells the breaker how a call went. A failure of one account alone, such as a key
// of the wrong type, says nothing about the store.
func (s *Shard) judge(batch []*slice.Settle, sentAt int64) {
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
	s.breaker.Failing(now, err)
}
