package syncer

import (
	"context"
	"fmt"

	"github.com/hybridlimit/hybrid/slice"
)

// Add makes a limiter; false if the node has one of that name. ErrClosed if
// the node is closed.
func (s *Syncer) Add(cfg LimiterConfig) (*Limiter, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, false, ErrClosed
	}
	if _, ok := s.limiters[cfg.Name]; ok {
		return nil, false, nil
	}
	l := &Limiter{s: s, name: cfg.Name, policy: cfg.Policy, planFor: cfg.PlanFor, table: slice.NewTable(s.ring), done: make(chan struct{})}
	l.common.lim = l
	l.plan.Store(cfg.Plan)
	l.history.Set(s.Now(), max(s.cfg.Servers, 1))
	s.limiters[cfg.Name] = l
	for _, way := range s.lanes {
		way.members.soon()
	}
	s.wake()
	return l, true, nil
}

func (s *Syncer) limiter(name string) *Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limiters[name]
}

// Limiters returns the node's limiters, in no order.
func (s *Syncer) Limiters() []*Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Limiter, 0, len(s.limiters))
	for _, l := range s.limiters {
		list = append(list, l)
	}
	return list
}

// Flush settles what there is to settle, and waits for it.
func (s *Syncer) Flush(ctx context.Context) error {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return ErrClosed
	}
	return flush(ctx, s.Limiters())
}

// flush settles the accounts of limiters that hold or owe something.
func flush(ctx context.Context, limiters []*Limiter) error {
	var waiting []*waiter
	failed := false
	for _, l := range limiters {
		l.table.Range(func(a *Account) bool {
			w, down := a.flush()
			failed = failed || down
			if w != nil {
				waiting = append(waiting, w)
			}
			return true
		})
	}
	for _, w := range waiting {
		select {
		case v := <-w.done:
			failed = failed || !v.Allowed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if failed {
		return ErrUnsettled
	}
	return nil
}

// flush joins the account's next settle if there is something to say. A closed
// limiter's settle returns the slice. It returns no waiter if there is nothing
// to say, or nobody to say it to: then down is true.
//
// What a user asks for is settled whether or not requests have paid for it: at
// most one operation per key in touch with the store.
func (a *Account) flush() (w *waiter, down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.contact()
	if c == nil || !c.inflight && !c.lease.Holds() && c.charged == 0 && c.fallback == 0 {
		return nil, false
	}
	if a.down() {
		return nil, true
	}
	w = &waiter{done: make(chan Verdict, 1)}
	c.waiting = append(c.waiting, w)
	a.start(intent{})
	return w, false
}

// end stops the limiter's requests; false if it had ended.
func (l *Limiter) end() bool {
	first := !l.closed.Swap(true)
	if first {
		close(l.done)
	}
	return first
}

// Close returns the limiter's slices, waits for that within ctx, and forgets
// its keys. Requests that wait get their answers; later ones ErrClosed.
func (l *Limiter) Close(ctx context.Context) error {
	if !l.end() {
		return nil
	}
	err := flush(ctx, []*Limiter{l})
	l.forget()
	// The registration goes before the name is free: the one that goes must
	// not be that of the next limiter of this name.
	err = firstError(err, l.s.leave(ctx, []*Limiter{l}))
	l.s.mu.Lock()
	delete(l.s.limiters, l.name)
	l.s.mu.Unlock()
	return err
}

// forget empties the table and the cells in it.
func (l *Limiter) forget() {
	l.table.Range(func(a *Account) bool {
		a.mu.Lock()
		a.dead = true
		if c := a.contact(); c != nil && !c.inflight {
			l.s.agenda.set(a, 0)
			a.lapse()
		}
		a.mu.Unlock()
		l.table.Remove(a)
		return true
	})
}

// Begin starts the end of the node: no limiter can be added. It reports whether
// this call was the first, and so the one that must call Shutdown.
func (s *Syncer) Begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.closing
	s.closing = true
	return first
}

// Shutdown closes all limiters, leaves the fleets and stops the node. It waits
// for the store within ctx.
func (s *Syncer) Shutdown(ctx context.Context) error {
	limiters := s.Limiters()
	for _, l := range limiters {
		l.end()
	}
	err := flush(ctx, limiters)
	s.stopOnce.Do(func() { close(s.stop) })
	err = firstError(err, s.settleDown(ctx))
	for _, l := range limiters {
		l.forget()
	}
	s.deadlines.stop()
	return firstError(err, s.leave(ctx, limiters))
}

// settleDown waits for the loop, its background tasks and the calls under way.
func (s *Syncer) settleDown(ctx context.Context) error {
	return within(ctx, func() error {
		s.tasks.Wait()
		for _, l := range s.lanes {
			<-l.dispatch.quiet()
		}
		return nil
	})
}

// leave removes the registrations of limiters, unless the store is down: then
// they lapse by themselves.
func (s *Syncer) leave(ctx context.Context, limiters []*Limiter) error {
	if len(limiters) == 0 || s.allDown() {
		return nil
	}
	names := make([]string, len(limiters))
	for i, l := range limiters {
		names[i] = l.name
	}
	err := within(ctx, func() error { return s.store.Leave(ctx, s.cfg.Member, names) })
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("hybrid: leaving the fleet: %w", err)
	}
	return err
}

// within runs f and waits for it no longer than ctx, which f may ignore.
func within(ctx context.Context, f func() error) error {
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

// firstError returns the first error that is one.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
