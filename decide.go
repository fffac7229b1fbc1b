package hybrid

import (
	"context"
	"fmt"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

// Allow is AllowN of one token.
func (l *Limiter) Allow(ctx context.Context, key string) (Result, error) {
	return l.allow(ctx, key, 1, 0)
}

// AllowN decides whether a request that costs n tokens may pass now. A denied
// request costs nothing. n = 0 is Peek.
//
// A key that is used up is paced: each node asks Redis for it once per period, a
// twentieth to an eighth of the time that the limit takes to fill, 20 ms at least and
// 10 s at most, and hands out what it got. RetryAfter is then the time to the node's next
// asking, not to the next token. Under the accuracy Exact there is no pace.
//
// Most calls are decided in memory and do not look at ctx. A call that needs
// Redis waits for StoreTimeout at most; after that the failure policy decides,
// and Result.Path says PathFallback. If ctx ends while it waits, its error is
// returned, and the tokens may have been taken.
//
// It fails with ErrInvalidCost (n < 0), ErrInvalidKey, ErrClosed or ctx.Err().
func (l *Limiter) AllowN(ctx context.Context, key string, n int64) (Result, error) {
	return l.allow(ctx, key, n, 0)
}

// allow is the fast path: a take from the slice. It waits for Redis until a moment of
// the node's clock or, if that is 0, for StoreTimeout.
func (l *Limiter) allow(ctx context.Context, key string, n, until int64) (Result, error) {
	var a *syncer.Account
	if n > 0 && len(key) <= exact.ShortKey {
		var ok bool
		if a, ok = l.core.Load(key); ok {
			// Read before the take, whose compare-and-swap no later read can overtake.
			limit, free, reset := l.core.Told(a)
			if left, ok := l.take(a, n); ok {
				// Built where it is returned: a copy would wait for its own stores.
				return Result{Allowed: true, Limit: limit, Remaining: min(left+free, limit), ResetAfter: reset, Path: PathSlice}, nil
			}
		}
	}
	return l.decide(ctx, a, key, n, until)
}

// take takes from the slice. The take that reaches the low-water mark asks for
// a refill, which does not hold it up.
func (l *Limiter) take(a *syncer.Account, n int64) (left int64, ok bool) {
	left, ok = a.Cell.Take(n, l.dead)
	if ok && a.Cell.Crossed(left, n) {
		a.Refill()
	}
	return left, ok
}

// decide is the slow path: everything but a take from the slice. The key's account
// may be known already.
func (l *Limiter) decide(ctx context.Context, a *syncer.Account, key string, n, until int64) (Result, error) {
	if err := check(key, n); err != nil {
		return Result{}, err
	}
	if n == 0 {
		return l.Peek(ctx, key)
	}
	for ; ; a = nil {
		if l.core.Closed() {
			return Result{}, ErrClosed
		}
		if a == nil {
			a = l.core.Account(exact.CellKey(key), key)
		}
		r, ok, err := l.judge(ctx, a, n, until)
		if ok {
			return l.shadow(r, err), err
		}
	}
}

// judge asks in the order of cost: slice, memo, floor, Redis. ok is false if
// the account was retired in the meantime.
func (l *Limiter) judge(ctx context.Context, a *syncer.Account, n, until int64) (r Result, ok bool, err error) {
	if _, ok := l.take(a, n); ok {
		return describe(a, Result{Allowed: true, Path: PathSlice}, n, l.node.sync.Now()), true, nil
	}
	now := l.node.sync.Now()
	a.Replan(now)
	if retry, ok := a.Denied(n, now); ok {
		return describe(a, Result{RetryAfter: retry, Path: PathMemo}, n, now), true, nil
	}
	if r, never := l.never(a, n, now); never {
		return r, true, nil
	}
	if a.TakeFloor(n, now) {
		return describe(a, Result{Allowed: true, Path: PathFloor}, n, now), true, nil
	}
	v, ok, err := a.Ask(ctx, n, until)
	if !ok || err != nil {
		return Result{}, ok, err
	}
	r = Result{Allowed: v.Allowed, RetryAfter: v.Retry, Path: pathOf[v.Source]}
	return describe(a, r, n, l.node.sync.Now()), true, nil
}

// never denies what can never pass.
func (l *Limiter) never(a *syncer.Account, n, now int64) (Result, bool) {
	if a.Plan().Fits(n) {
		return Result{}, false
	}
	l.core.Counts.ExactDenied.Add(1)
	return describe(a, Result{RetryAfter: Never, Path: PathExact}, n, now), true
}

var pathOf = [...]Path{
	syncer.FromStore:  PathExact,
	syncer.FromSlice:  PathSlice,
	syncer.FromMemo:   PathMemo,
	syncer.FromPolicy: PathFallback,
}

// describe fills in what is known of the key's account. What was denied n tokens
// has fewer, whatever was told of it before.
func describe(a *syncer.Account, r Result, n, now int64) Result {
	r.Limit, r.Remaining, r.ResetAfter = a.View(now)
	if !r.Allowed {
		r.Remaining = min(r.Remaining, max(n-1, 0))
	}
	return r
}

// shadow lets a denied request pass in shadow mode, and counts it.
func (l *Limiter) shadow(r Result, err error) Result {
	if !l.opts.Shadow || r.Allowed || err != nil {
		return r
	}
	l.core.Counts.Shadowed.Add(1)
	r.Allowed, r.Shadowed, r.RetryAfter = true, true, 0
	return r
}

func check(key string, n int64) error {
	switch {
	case n < 0:
		return invalidCost(n)
	case len(key) > longestKey:
		return fmt.Errorf("%w: %d bytes, allowed up to %d", ErrInvalidKey, len(key), longestKey)
	}
	return nil
}

func invalidCost(n int64) error {
	return fmt.Errorf("%w: %d, allowed 0 to %d", ErrInvalidCost, n, int64(slice.MaxTokens))
}
