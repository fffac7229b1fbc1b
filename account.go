package hybrid

import (
	"context"
	"fmt"
	"time"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

// Peek asks Redis how a key stands. It charges, writes and keeps nothing.
// Result.Allowed says whether a request of one token would pass on this node now, also
// where its slice, its floor or a denial that it remembers would decide and not Redis; of
// shadow mode it takes no notice. Remaining is what Redis and the node's slice have left,
// also while the node denies from memory. Without an answer within StoreTimeout Peek
// reports what this node knows, with PathFallback.
//
// It fails with ErrInvalidKey, ErrClosed or ctx.Err().
func (l *Limiter) Peek(ctx context.Context, key string) (Result, error) {
	v, err := l.look(ctx, key)
	if err != nil {
		return Result{}, err
	}
	s, plan := &v.state, v.node.Plan
	r := Result{Limit: plan.Burst, Path: PathExact}
	switch {
	case plan.Never:
		r.RetryAfter = Never
		return r, nil
	case plan.Always:
		r.Allowed, r.Remaining = true, plan.Burst
		return r, nil
	case s.Store != nil:
		r.Remaining, r.ResetAfter = v.remaining()
	default:
		r.Path, r.ResetAfter = PathFallback, s.ToldFull
		r.Remaining = min(s.Slice+s.ToldFree, plan.Burst)
	}
	f := v.foresee()
	if r.Allowed = f.allowed; !r.Allowed {
		r.RetryAfter = v.retryAfter(f.path)
	}
	return r, nil
}

// remaining returns what Redis and the node's slice have left, and when all is free: both
// of one state, less what the node has not told yet.
func (v *view) remaining() (tokens int64, reset time.Duration) {
	if v.mixed { // what the node knows is of one state, and as new
		return v.node.Remaining, v.node.ResetAfter
	}
	rule, g := v.node.Plan.Rule, v.store
	g.Used = max(g.Used-float64(v.state.Slice)+v.untold(), 0)
	free := max(float64(rule.Burst)-g.Used, 0)
	if g.Used == 0 {
		free = float64(v.node.Plan.Burst)
	}
	return min(key.Whole(free), v.node.Plan.Burst), slice.ResetAfter(rule, g)
}

// retryAfter returns when a request that is denied on a path may be worth a retry.
func (v *view) retryAfter(path Path) time.Duration {
	var own, memo time.Duration
	if v.state.Store != nil {
		g := v.store
		g.Used += v.untold()
		own = slice.RetryAfter(v.node.Plan.Rule, g, 1)
	}
	if path == PathMemo {
		memo = v.state.DeniedFor
	}
	if path == PathFallback || max(own, memo) == 0 {
		return key.ProbeInterval
	}
	return max(own, memo)
}

// Refund gives back n tokens of an admission that did not happen after all,
// such as a request that failed before it cost anything. It never leaves more
// than the limit free. Tokens of a slice are usable again at once, others reach
// Redis within a sync interval or two. Refund soon: what has been refilled since is
// given back once more. If Redis's reply to it is lost, so may the refund be, and under
// a limit of 0 it is. n = 0 does nothing. Nothing is waited for.
//
// It fails with ErrInvalidCost (n < 0 or n > 2^53), ErrInvalidKey or ErrClosed.
func (l *Limiter) Refund(key string, n int64) error {
	return l.adjust(key, n, (*syncer.Account).Refund)
}

// Charge takes n tokens without asking: the cost of a request that became known
// later. What this node's slice has pays for it at once. The rest may take the key into
// debt, of at most one burst, which must drain before anything is admitted again; until
// Redis knows of it the node's floor does not serve the key. Redis learns of it within a sync interval
// or two; if its reply is lost, the tokens are charged again, and under a limit of 0
// they are not charged. n = 0 does nothing. Nothing is waited for.
//
// It fails with ErrInvalidCost (n < 0 or n > 2^53), ErrInvalidKey or ErrClosed.
func (l *Limiter) Charge(key string, n int64) error {
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

// Reset frees all that a key has used, but for what other nodes hold in slices and what an
// operation without an answer may still charge, and forgets this node's denial. Denials
// that other nodes remember end within 10 s; what another node has taken as a slice by then
// comes back when it is used or asked for, within a minute. It asks LimitFor for the key's limit.
//
// It waits for Redis, StoreTimeout at most: for an operation under way, too. It fails with ErrInvalidKey,
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
	if !plan.Stored() { // the account is there all the same, for the next limit
		rule = l.Limit(key).ResetRule()
	}
	err := l.core.Reset(ctx, exact.CellKey(key), rule)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("hybrid: Reset: %w", err)
	}
	l.waits.Wake()
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
	a.RefreshPlan(l.node.sync.Now())
	return a.Plan()
}

// planOf returns the plan of a key without making an account for it.
func (l *Limiter) planOf(key string) *syncer.Plan {
	if a, ok := l.core.Load(exact.CellKey(key)); ok {
		a.RefreshPlan(l.node.sync.Now())
		return a.Plan()
	}
	if l.tiers != nil {
		if p := l.tiers.planFor(key); p != nil {
			return p
		}
	}
	return l.core.Plan()
}
