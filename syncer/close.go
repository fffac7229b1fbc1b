package syncer

import (
	"context"
	"fmt"

	"github.com/hybridlimit/hybrid/internal/batch"
	"github.com/hybridlimit/hybrid/internal/key"
)

// Add makes a limiter; false if the node has one of that name. ErrClosed if
// the node is closed.
func (s *Syncer) Add(cfg LimiterConfig) (*Limiter, bool, error) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	if s.registry.closing {
		return nil, false, ErrClosed
	}
	if _, ok := s.registry.byName[cfg.Name]; ok {
		return nil, false, nil
	}
	l := s.newLimiter(cfg)
	s.registry.byName[cfg.Name] = l
	for _, part := range s.link.shards {
		part.heart.Soon()
	}
	s.loop.wake()
	return l, true, nil
}

func (s *Syncer) limiter(name string) *Limiter {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	return s.registry.byName[name]
}

// Limiters returns the node's limiters, in no order.
func (s *Syncer) Limiters() []*Limiter {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	list := make([]*Limiter, 0, len(s.registry.byName))
	for _, l := range s.registry.byName {
		list = append(list, l)
	}
	return list
}

// Flush settles what there is to settle, and waits for it.
func (s *Syncer) Flush(ctx context.Context) error {
	s.registry.mu.Lock()
	closing := s.registry.closing
	s.registry.mu.Unlock()
	if closing {
		return ErrClosed
	}
	return flush(ctx, s.Limiters())
}

// flush settles the accounts of limiters that hold or owe something.
func flush(ctx context.Context, limiters []*Limiter) error {
	var waiting []*key.Waiter
	failed := false
	for _, l := range limiters {
		failed = l.end.lost.Swap(false) || failed
		l.each(func(a *Account) {
			w, down := a.flush()
			failed = failed || down
			if w != nil {
				waiting = append(waiting, w)
			}
		})
	}
	for _, w := range waiting {
		select {
		case answer := <-w.Answer:
			failed = failed || !answer.Allowed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if failed {
		return ErrUnsettled
	}
	return nil
}

// flush joins the account's next settle if there is something to tell. A closed
// limiter's settle returns the slice. Without a waiter, down says that there is
// something to tell and the store is silent.
//
// What a user asks for is settled whether or not requests have paid for it: at most
// one operation per key in touch with the store.
func (a *Account) flush() (w *key.Waiter, down bool) {
	a.update(func(s *key.State, t *key.Step) {
		down = t.Down && s.Tells()
		w = s.Flush(t)
	})
	return w, down
}

// stop ends the limiter's requests; false if it had ended.
func (l *Limiter) stop() bool {
	first := !l.end.closed.Swap(true)
	if first {
		close(l.end.done)
	}
	return first
}

// Close returns the limiter's slices, waits for that within ctx, and forgets its keys.
// Requests that wait get their answers; later ones ErrClosed. undone returns when requests
// under way have undone what another limit denied.
func (l *Limiter) Close(ctx context.Context, undone func()) error {
	if !l.stop() {
		return nil
	}
	_ = batch.Within(ctx, func() error { undone(); return nil })
	err := flush(ctx, []*Limiter{l})
	l.forget()
	// The registration goes before the name is free: the one that goes must
	// not be that of the next limiter of this name.
	err = firstError(err, l.s.leave(ctx, []*Limiter{l}))
	l.s.registry.mu.Lock()
	delete(l.s.registry.byName, l.name)
	l.s.registry.mu.Unlock()
	return err
}

// forget empties the table and the cells in it.
func (l *Limiter) forget() {
	l.each(func(a *Account) {
		a.lock()
		a.Known.Retired = true
		a.unlock()
		a.update(func(s *key.State, t *key.Step) {
			if !s.Busy() {
				s.Discard(t)
			}
		})
		l.table.Remove(a)
	})
}

// Begin starts the end of the node: no limiter can be added. It reports whether
// this call was the first, and so the one that must call Shutdown.
func (s *Syncer) Begin() bool {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	first := !s.registry.closing
	s.registry.closing = true
	return first
}

// Shutdown closes all limiters, leaves the fleets and stops the node. It waits for the
// store within ctx. undone is as for [Limiter.Close].
func (s *Syncer) Shutdown(ctx context.Context, undone func()) error {
	limiters := s.Limiters()
	for _, l := range limiters {
		l.stop()
	}
	_ = batch.Within(ctx, func() error { undone(); return nil })
	err := flush(ctx, limiters)
	s.loop.stop()
	err = firstError(err, s.settleDown(ctx))
	for _, l := range limiters {
		l.forget()
	}
	s.expiry.stop()
	return firstError(err, s.leave(ctx, limiters))
}

// settleDown waits for the loop, its background tasks and the calls under way.
func (s *Syncer) settleDown(ctx context.Context) error {
	return batch.Within(ctx, func() error {
		s.loop.tasks.Wait()
		s.link.batcher.Wait()
		return nil
	})
}

// leave removes the registrations of limiters, unless the store is down: then
// they lapse by themselves.
func (s *Syncer) leave(ctx context.Context, limiters []*Limiter) error {
	if len(limiters) == 0 || s.link.batcher.AllDown() {
		return nil
	}
	err := batch.Within(ctx, func() error { return s.store.Leave(ctx, s.cfg.Member, names(limiters)) })
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("hybrid: leaving the fleet: %w", err)
	}
	return err
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
