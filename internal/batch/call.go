package batch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// call is one call of the store: its jobs, and what ends it: the reply, the timeout, or
// the end of an outage. What comes later is void.
type call struct {
	shard   *Shard
	jobs    []Job
	settles []*slice.Settle // of each job; nil: it had nothing to tell
	ended   atomic.Bool
	sentAt  int64
}

// send settles a batch and hands out the replies; false if the call was given up before.
// While the shard is down it sends nothing: what was queued before the outage would hang
// in it beyond its end.
func (s *Shard) send(batch []queued) bool {
	if s.Down() {
		s.refuse(batch)
		return true
	}
	for _, q := range batch {
		q.job.Refresh(s.b.cfg.Now())
	}
	c := &call{shard: s, sentAt: s.b.cfg.Now()}
	settles := make([]*slice.Settle, 0, len(batch))
	for _, q := range batch {
		st, ok := q.job.Prepare(q.background, c.sentAt)
		if !ok {
			continue
		}
		c.jobs, c.settles = append(c.jobs, q.job), append(c.settles, st)
		if st != nil {
			settles = append(settles, st)
		}
	}
	if len(settles) > 0 {
		timer := time.AfterFunc(s.b.cfg.CallTimeout, c.timeout) // the context may be looked at too late
		defer timer.Stop()
		ctx, cancel := context.WithTimeout(slice.Background, s.b.cfg.CallTimeout)
		defer cancel()
		s.beginCall(c)
		defer s.endCall(c)
		s.b.cfg.Send(ctx, settles)
	}
	if !c.ended.CompareAndSwap(false, true) {
		return false
	}
	c.complete(settles)
	return true
}

// refuse ends jobs that are not sent. They cost nothing.
func (s *Shard) refuse(batch []queued) {
	for _, q := range batch {
		st, ok := q.job.Prepare(q.background, s.b.cfg.Now())
		if !ok {
			continue
		}
		if st != nil {
			st.Outcome, st.Err = slice.NotRun, ErrDown
			s.b.cfg.Failed(st.Err)
		}
		q.job.Done(st, false)
	}
}

func (s *Shard) beginCall(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

func (s *Shard) endCall(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = slices.DeleteFunc(s.calls, func(o *call) bool { return o == c })
}

// giveUpOn ends the calls that were sent before a moment. An outage is over when the
// first call is answered; those that are not soon afterwards were lost in it, and their
// keys would wait for them.
func (s *Shard) giveUpOn(before int64) {
	s.mu.Lock()
	calls := slices.Clone(s.calls)
	s.mu.Unlock()
	for _, c := range calls {
		if c.sentAt < before && c.ended.CompareAndSwap(false, true) {
			c.fail()
		}
	}
}

// complete hands out what the store answered.
func (c *call) complete(settles []*slice.Settle) {
	if len(settles) > 0 {
		c.count(len(settles))
		c.shard.record(settles, c.sentAt)
	}
	for i, j := range c.jobs {
		st := c.settles[i]
		if st != nil && st.Outcome != slice.Ran {
			c.shard.b.cfg.Failed(st.Err)
		}
		j.Done(st, true)
	}
}

// timeout gives up on a call that takes too long.
func (c *call) timeout() {
	if c.ended.CompareAndSwap(false, true) {
		c.shard.TimedOut(c.shard.b.cfg.Now())
		c.fail()
	}
}

// fail ends a call without a reply: its settles may have been executed, or may yet be. The
// client may hold the call for as long as its own timeouts are; another takes its place.
func (c *call) fail() {
	defer c.shard.replace()
	lost := 0
	for i, j := range c.jobs {
		st := c.settles[i]
		if st == nil {
			j.Done(nil, true)
			continue
		}
		lost++
		void := &slice.Settle{Rule: st.Rule, Usage: st.Usage, Outcome: slice.Unknown, Err: ErrTimeout}
		c.shard.b.cfg.Failed(void.Err)
		j.Done(void, true)
	}
	c.count(lost)
}

// count counts the call.
func (c *call) count(settles int) {
	c.shard.b.Counts.call(c.shard.b.cfg.Now()-c.sentAt, settles)
}

// Ask executes one settle outside of the queues and waits for it until ctx ends; the call
// goes on after that, until the call timeout. The shard should not be down.
func (s *Shard) Ask(ctx context.Context, st *slice.Settle) error {
	b, sentAt := s.b, s.b.cfg.Now()
	return Within(ctx, func() error {
		batch := []*slice.Settle{st}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CallTimeout)
		defer cancel()
		count := sync.OnceFunc(func() { b.Counts.call(b.cfg.Now()-sentAt, 1) })
		defer time.AfterFunc(b.cfg.CallTimeout, count).Stop() // the context may be looked at too late
		b.cfg.Send(late, batch)
		count()
		s.record(batch, sentAt)
		return nil
	})
}

// Within runs f and waits for it no longer than ctx, which f may ignore.
func Within(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
