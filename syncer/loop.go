package syncer

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// loop is the node's one owner of time. It never calls the store itself, so nothing that
// the store does can hold it up.
type loop struct {
	wakeup     chan struct{}
	done       chan struct{}
	doneOnce   sync.Once
	tasks      sync.WaitGroup // the loop and what it runs in the background
	exchanging atomic.Bool    // an exchange of which keys are scarce is under way
}

func (l *loop) start(s *Syncer) {
	l.wakeup, l.done = make(chan struct{}, 1), make(chan struct{})
	s.timers.next, s.timers.wakeup = math.MaxInt64, l.wake
	l.tasks.Add(1)
	go l.run(s)
}

// wake makes the loop look at the timer queue. It never blocks.
func (l *loop) wake() {
	select {
	case l.wakeup <- struct{}{}:
	default:
	}
}

func (l *loop) stop() { l.doneOnce.Do(func() { close(l.done) }) }

func (l *loop) run(s *Syncer) {
	defer l.tasks.Done()
	ticker := time.NewTicker(s.cfg.SyncInterval)
	defer ticker.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-ticker.C:
			s.tick()
		case <-l.wakeup:
		case <-timer.C:
		}
		wait := s.runTimers()
		for _, part := range s.link.shards {
			part.heart.Beat(s.Now())
			wait = min(wait, max(time.Duration(part.heart.Wait(s.Now())), key.TimerPause))
		}
		timer.Reset(wait)
	}
}

// background runs a task that may block on the store; Shutdown waits for it.
func (s *Syncer) background(task func()) { s.loop.tasks.Go(task) }

// runTimers looks at the accounts that are due and returns how long the loop may sleep.
func (s *Syncer) runTimers() time.Duration {
	due, next := s.timers.take(s.Now())
	for _, a := range due {
		a.update((*key.State).Look)
	}
	if len(due) > 0 {
		s.link.batcher.Flush() // what became due together shares calls
	}
	if next == math.MaxInt64 {
		return time.Hour
	}
	return max(time.Duration(next-s.Now()), key.TimerPause)
}

// tick exchanges which keys are scarce, sends what was left for it, moves the coarse clock
// and sweeps a part of the table.
func (s *Syncer) tick() {
	if !s.link.batcher.AllDown() && s.loop.exchanging.CompareAndSwap(false, true) {
		holding := s.timers.len() > 0 // before the loop takes what is due
		s.background(func() {
			defer s.loop.exchanging.Store(false)
			ctx, cancel := context.WithTimeout(slice.Background, s.callTimeout())
			defer cancel()
			s.reclaim.exchange(ctx, holding)
		})
	}
	s.link.batcher.Tick()
	now := s.Now()
	s.coarse.Store(now)
	// Ticks compare modulo 2^32: a watermark that no lease moves must not fall behind.
	s.Dead.Pass(slice.TickAt(now))
	s.ring.Sweep(s.sweepShare())
}

// sweepShare is how many keys a tick looks at, so that all are seen about once a minute
// and no tick takes long.
func (s *Syncer) sweepShare() int {
	perTick := int(int64(s.ring.Len()) * int64(s.cfg.SyncInterval) / int64(time.Minute))
	return min(perTick+16, 4096)
}
