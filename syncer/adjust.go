package syncer

import (
	"context"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// This file is what callers do to an account besides asking for admission.

// Charge adds n tokens that were used without asking. ok is false if the account was
// retired, or its limiter closed.
func (a *Account) Charge(n int64) (ok bool) {
	return a.adjust(false, func(s *key.State, t *key.Step) { s.Charge(t, n) })
}

// Refund gives back n tokens of an admission that did not happen after all. ok is false
// if the account was retired, or its limiter closed.
func (a *Account) Refund(n int64) (ok bool) {
	return a.adjust(false, func(s *key.State, t *key.Step) { s.Refund(t, n) })
}

// Undo gives back n tokens that a request took at a moment and on a path, because another
// limit denied the request. A limiter that is closing still takes them. ok is false
// if the account was retired.
func (a *Account) Undo(n int64, path Path, takenAt int64) (ok bool) {
	return a.adjust(true, func(s *key.State, t *key.Step) { s.Undo(t, n, path, takenAt) })
}

func (a *Account) adjust(closing bool, do func(s *key.State, t *key.Step)) (ok bool) {
	l := a.limiter()
	now := l.s.Now()
	a.lock()
	defer a.unlock()
	if a.Known.Retired || l.end.closed.Load() && !closing {
		return false
	}
	a.Known.Touch()
	t := a.stepLocked(now)
	do(&a.stateLocked(&t).state, &t)
	a.finishLocked(&t)
	return true
}

// Reset frees all of a key's account but what other nodes hold, and forgets this
// node's denials. It waits for the store until ctx ends, the limiter's timeout at most.
// user is the key as the caller gave it; under a limit of 0 rule says how to count.
func (l *Limiter) Reset(ctx context.Context, name string, rule slice.Rule) error {
	if l.end.closed.Load() {
		return ErrClosed
	}
	l.outside.each(func(a *Account) {
		if a.name == name { // it has left the table, and must not tell what it owes
			a.update((*key.State).ForgetUse)
		}
	})
	a, ok := l.table.Load(name)
	if ok {
		if w, err := a.reset(); w != nil || err != nil {
			return l.awaitReset(ctx, a, w, err)
		}
	}
	st := &slice.Settle{Rule: rule, Usage: slice.Usage{Charged: -key.Everything}}
	_, err := l.consult(ctx, name, st)
	return err
}

// reset queues the reset of a key in touch with the store. It returns no waiter for
// another one, of which it forgets the floor's use.
func (a *Account) reset() (w *key.Waiter, err error) {
	l := a.limiter()
	now := l.s.Now()
	if b := a.binding.Load(); l.planFor != nil {
		b.asked.Store(now)
		a.askPlan(b, now)
	}
	a.lock()
	defer a.unlock()
	t := a.stepLocked(now)
	if t.Down {
		return nil, ErrDown
	}
	c := a.active.Load()
	if c == nil || !t.Plan.Stored() {
		t.ForgetFloor()
		if c != nil {
			c.state.ForgetUse(&t)
		}
	} else {
		w = c.state.Reset(&t)
	}
	a.finishLocked(&t)
	return w, nil
}

func (l *Limiter) awaitReset(ctx context.Context, a *Account, w *key.Waiter, err error) error {
	if err != nil {
		return err
	}
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case answer := <-w.Answer:
		if !answer.Allowed && w.Err == nil {
			return ErrUnsettled
		}
		return w.Err
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = ErrTimeout
	}
	_, _ = a.leave(w, err)
	return err
}

// Read asks the store for the state of a key and changes nothing, here or there. It
// waits for the limiter's timeout at most.
func (l *Limiter) Read(ctx context.Context, name string, rule slice.Rule) (slice.Grant, error) {
	return l.consult(ctx, name, &slice.Settle{Rule: rule})
}

// consult executes one settle of a key outside any account.
func (l *Limiter) consult(ctx context.Context, name string, st *slice.Settle) (slice.Grant, error) {
	if l.end.closed.Load() {
		return slice.Grant{}, ErrClosed
	}
	st.Account = l.s.store.Account(l.name, name)
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout, ErrTimeout)
	defer cancel()
	shard := l.s.shardOf(l.name, name)
	if shard.Down() {
		return slice.Grant{}, ErrDown
	}
	switch err := shard.Ask(ctx, st); {
	case err != nil:
		return slice.Grant{}, context.Cause(ctx)
	case st.Outcome != slice.Ran:
		return slice.Grant{}, st.Err
	}
	l.Counts.operation(&st.Usage, &st.Grant)
	return st.Grant, nil
}
