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
// the node's clock or, if that is 0, for the limiter's timeout.
func (l *Limiter) allow(ctx context.Context, key string, n, until int64) (Result, error) {
	var a *syncer.Account
	if n > 0 && len(key) <= exact.ShortKey {
		var ok bool
		if a, ok = l.core.Load(key); ok {
			plan, known := l.core.Known(a)
			if left, ok := l.take(a, n); ok {
				// Built where it is returned: a copy would wait for its own stores.
				limit, remaining, reset := known.View(plan, left)
				return Result{Allowed: true, Limit: limit, Remaining: remaining, ResetAfter: reset, Path: PathSlice}, nil
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

// decide is the slow path: everything but a take from the slice. a is the key's account,
// whose slice did not serve the request, or nil.
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
		now := l.node.sync.Now()
		if a == nil {
			a = l.core.Account(exact.CellKey(key), key)
			if _, ok := l.take(a, n); ok {
				return describe(a, syncer.Answer{Allowed: true}, n, now), nil
			}
		}
		answer, ok, err := a.Decide(ctx, n, until, now)
		if err != nil {
			return Result{}, err
		}
		if ok {
			if answer.Path != PathMemo && answer.Path != PathFloor {
				now = l.node.sync.Now() // it may have waited
			}
			return l.shadow(describe(a, answer, n, now)), nil
		}
	}
}

// describe adds to an answer what is known of the key's account. What was denied n tokens
// has fewer, whatever is known of it.
func describe(a *syncer.Account, answer syncer.Answer, n, now int64) Result {
	r := Result{Allowed: answer.Allowed, Path: answer.Path, RetryAfter: answer.RetryAfter}
	r.Limit, r.Remaining, r.ResetAfter = a.View(now)
	if !r.Allowed {
		r.Remaining = min(r.Remaining, max(n-1, 0))
	}
	return r
}

// shadow lets a denied request pass in shadow mode, and counts it.
func (l *Limiter) shadow(r Result) Result {
	if !l.opts.Shadow || r.Allowed {
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
