package hybrid

import (
	"context"
	"fmt"
	"math"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

// Peek asks Redis how a key stands. It charges, writes and keeps nothing.
// Result.Allowed says whether a request of one token would pass now. Without an
// answer within StoreTimeout it reports what this node knows, with PathFallback.
//
// It fails with ErrInvalidKey, ErrClosed or ctx.Err().
func (l *Limiter) Peek(ctx context.Context, key string) (Result, error) {
	if err := l.usable(key, 0); err != nil {
		return Result{}, err
	}
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	plan := l.planOf(key)
	if plan.Never {
		return Result{Limit: plan.Burst, RetryAfter: Never, Path: PathExact}, nil
	}
	cell := exact.CellKey(key)
	g, err := l.core.Read(ctx, cell, plan.Rule)
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	a, known := l.core.Load(cell)
	if err != nil {
		return l.recall(a, known, plan), nil
	}
	var held int64
	if known {
		held = a.Cell.Alive(l.dead)
	}
	free := max(0, int64(math.Floor(float64(plan.Rule.Burst)-g.Used)))
	r := Result{Limit: plan.Burst, Remaining: min(held+free, plan.Burst), ResetAfter: slice.ResetAfter(plan.Rule, g), Path: PathExact}
	if r.Allowed = r.Remaining > 0; !r.Allowed {
		r.RetryAfter = slice.RetryAfter(plan.Rule, g, 1)
	}
	return r, nil
}

// recall is Peek without Redis.
func (l *Limiter) recall(a *syncer.Account, known bool, plan *syncer.Plan) Result {
	r := Result{Limit: plan.Burst, Remaining: plan.Burst, Path: PathFallback}
	if known {
		r.Limit, r.Remaining, r.ResetAfter = a.View(l.node.sync.Now())
	}
	switch l.opts.OnFailure {
	case FailOpen:
		r.Allowed = true
	case FailLocal:
		r.Allowed = r.Remaining > 0
	}
	if !r.Allowed {
		r.RetryAfter = syncer.ProbeInterval
	}
	return r
}

// Refund gives back n tokens of an admission that did not happen after all,
// such as a request that failed before it cost anything. It never leaves more
// than the limit free. Tokens of a slice are usable again at once, others reach
// Redis within a sync interval or two. Refund soon: what has been refilled since is
// given back once more. If Redis's reply to it is lost, so may the refund be, and under
// a limit of 0 it is. n = 0 does nothing. ctx is not looked at: nothing is waited for.
//
// It fails with ErrInvalidCost (n < 0 or n > 2^53), ErrInvalidKey or ErrClosed.
func (l *Limiter) Refund(ctx context.Context, key string, n int64) error {
	return l.adjust(key, n, (*syncer.Account).Refund)
}

// Charge takes n tokens without asking: the cost of a request that became known
// later. It may take the key into debt, of at most one burst, which must drain
// before anything is admitted again. Redis learns of it within a sync interval
// or two; if its reply is lost, the tokens are charged again, and under a limit of 0
// they are not charged. n = 0 does nothing. ctx is not looked at: nothing is waited for.
//
// It fails with ErrInvalidCost (n < 0 or n > 2^53), ErrInvalidKey or ErrClosed.
func (l *Limiter) Charge(ctx context.Context, key string, n int64) error {
	return l.adjust(key, n, (*syncer.Account).Charge)
}

func (l *Limiter) adjust(key string, n int64, change func(*syncer.Account, int64) bool) error {
	if err := l.usable(key, n); err != nil {
		return err
	}
	if n > slice.MaxTokens {
		return invalidCost(n)
	}
	cell := exact.CellKey(key)
	for n > 0 && !change(l.core.Account(cell, key), n) {
		if l.core.Closed() {
			return ErrClosed
		}
	}
	return nil
}

// Reset frees all that a key has used, except what nodes hold in slices, and
// forgets this node's denial. Denials that other nodes remember end within 10 s.
//
// It waits for Redis, StoreTimeout at most. It fails with ErrInvalidKey,
// ErrClosed, ctx.Err(), or what kept Redis from doing it.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := l.usable(key, 0); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	plan := l.planOf(key)
	rule := plan.Rule
	if plan.Never { // the account is there all the same, for the next limit
		rule = l.Limit(key).ResetRule()
	}
	err := l.core.Reset(ctx, exact.CellKey(key), rule)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("hybrid: Reset: %w", err)
	}
	l.waits.wake()
	return nil
}

// usable checks a call's arguments and that the limiter is open.
func (l *Limiter) usable(key string, n int64) error {
	if err := check(key, n); err != nil {
		return err
	}
	if l.core.Closed() {
		return ErrClosed
	}
	return nil
}

// known returns the account of a key for a request that goes on to use it. Without one
// it is nil where the limiter's limit is that of all keys; else it makes one, or the
// request would ask LimitFor a second time.
func (l *Limiter) known(key string) *syncer.Account {
	cell := exact.CellKey(key)
	if a, ok := l.core.Load(cell); ok {
		return a
	}
	if l.tiers == nil {
		return nil
	}
	return l.core.Account(cell, key)
}

// planAhead returns the plan of a key for a request that goes on to use it.
func (l *Limiter) planAhead(key string) *syncer.Plan {
	a := l.known(key)
	if a == nil {
		return l.core.Plan()
	}
	a.Replan(l.node.sync.Now())
	return a.Plan()
}

// planOf returns the plan of a key without making an account for it.
func (l *Limiter) planOf(key string) *syncer.Plan {
	if a, ok := l.core.Load(exact.CellKey(key)); ok {
		a.Replan(l.node.sync.Now())
		return a.Plan()
	}
	if l.tiers != nil {
		if p := l.tiers.planFor(key); p != nil {
			return p
		}
	}
	return l.core.Plan()
}
