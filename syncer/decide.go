package syncer

import (
	"context"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// Refill asks for more tokens because a take reached the low-water mark. It returns at
// once.
func (a *Account) Refill() { a.update((*key.State).Refill) }

// Denied reports whether a request is denied from memory, and when a retry can
// succeed. A cost that can never fit is not the deny cache's to judge.
func (a *Account) Denied(n, now int64) (retry time.Duration, denied bool) {
	c := a.active.Load()
	if c == nil {
		return 0, false
	}
	m := c.deny.Load()
	if m == nil || !a.Plan().Fits(n) || !m.Denies(n, now) {
		return 0, false
	}
	return m.RetryAfter(now), true
}

// DecideHere decides a request that this node can decide without taking anything: it denies from
// memory and what can never fit, and admits on a key that is unlimited.
func (a *Account) DecideHere(n, now int64) (answer Answer, decided bool) {
	a.RefreshPlan(now)
	if retry, denied := a.Denied(n, now); denied {
		return Answer{Path: key.PathMemo, RetryAfter: retry}, true
	}
	switch plan := a.Plan(); {
	case plan.Always:
		return Answer{Allowed: true, Path: key.PathExact}, true
	case !plan.Fits(n):
		a.limiter().Counts.ExactDenied.Add(1)
		return Answer{Path: key.PathExact, RetryAfter: slice.Never}, true
	}
	return Answer{}, false
}

// Decide decides a request of n tokens that the slice did not serve, in the order of cost:
// deny cache, floor, store. A request that needs the store joins the key's next settle,
// and waits for its reply until a moment (ns) or, if that is 0, for the limiter's timeout.
// After that, and at once while the store is silent, the failure policy decides.
//
// A caller whose ctx ends gets its error and disturbs no other; if the settle was under
// way its tokens may have been charged.
//
// now is the moment of the request. ok is false if the account was retired: the caller
// must look the key up again.
func (a *Account) Decide(ctx context.Context, n, until, now int64) (answer Answer, ok bool, err error) {
	l, seen := a.limiter(), a.replies()
	if answer, decided := a.DecideHere(n, now); decided {
		if answer.Allowed {
			l.Counts.ExactAllowed.Add(1)
		}
		return answer, true, nil
	}
	answer, w, ok, err := a.admit(ctx, n, until, now, seen)
	if w == nil {
		return answer, ok, err
	}
	l.Counts.Blocked.Add(1)
	answer, err = a.await(ctx, w, until)
	return answer, true, err
}

// replies counts the store's replies, so that a request which waits for the lock sees
// whether one has come meanwhile.
func (a *Account) replies() uint32 {
	if c := a.active.Load(); c != nil {
		return c.applied.Load()
	}
	return 0
}

// admit decides under the lock, or queues the request and returns its waiter.
func (a *Account) admit(ctx context.Context, n, until, now int64, seen uint32) (answer Answer, w *key.Waiter, ok bool, err error) {
	a.lock()
	defer a.unlock()
	switch {
	case a.Known.Retired:
		return answer, nil, false, nil
	case a.limiter().end.closed.Load():
		return answer, nil, true, ErrClosed
	}
	c := a.active.Load()
	if c == nil && a.coldFloorLocked(n, now) {
		return Answer{Allowed: true, Path: key.PathFloor}, nil, true, nil
	}
	t := a.stepLocked(now)
	answer, ok = a.admitHereLocked(&t, c, n, seen)
	if !ok {
		if err := ctx.Err(); err != nil {
			return answer, nil, true, err
		}
		c = a.stateLocked(&t)
		answer, w = c.state.Admit(&t, n, until != 0 && now >= until)
	}
	a.Known.Touch()
	a.finishLocked(&t)
	return answer, w, true, nil
}

// admitHereLocked admits from the slice or denies from memory if a reply has come since
// the request looked, and else admits from the floor.
func (a *Account) admitHereLocked(t *key.Step, c *active, n int64, seen uint32) (Answer, bool) {
	if c == nil {
		return Answer{}, false
	}
	if c.applied.Load() != seen {
		if answer, ok := c.state.Recheck(t, n); ok {
			return answer, true
		}
	}
	if c.state.TakeFloor(t, n) {
		return Answer{Allowed: true, Path: key.PathFloor}, true
	}
	return Answer{}, false
}

// coldFloorLocked admits from the floor of a key that is not in touch with the store, as
// most keys are: without a step of the key's state.
func (a *Account) coldFloorLocked(n, now int64) bool {
	l := a.limiter()
	if a.Known.Untracked {
		return false
	}
	g := a.groundLocked(now, l, l.s.shardOf(l.name, a.name))
	if !g.TakeFloor(n) {
		return false
	}
	a.Known.Touch()
	l.Counts.Floor.Add(1)
	return true
}

func stateOf(c *active) *key.State {
	if c == nil {
		return nil
	}
	return &c.state
}

// await waits for the answer of a settle.
func (a *Account) await(ctx context.Context, w *key.Waiter, until int64) (Answer, error) {
	l := a.limiter()
	wait := l.timeout
	if until != 0 {
		wait = time.Duration(until - l.s.Now())
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var err error
	select {
	case answer := <-w.Answer:
		return answer, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	return a.leave(w, err)
}

// leave takes a request out that stops waiting, with an error if its caller has left.
func (a *Account) leave(w *key.Waiter, err error) (Answer, error) {
	now := a.limiter().s.Now()
	a.lock()
	defer a.unlock()
	t := a.stepLocked(now)
	answer, answered := a.stateLocked(&t).state.Leave(&t, w, err != nil)
	a.finishLocked(&t)
	if !answered {
		return Answer{}, err
	}
	return answer, nil
}
