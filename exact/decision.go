package exact

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Decision is the answer of Redis to one request.
type Decision struct {
	Allowed    bool
	Limit      int64         // the burst of a token bucket, the count of a window
	Remaining  int64         // tokens left; 0 to Limit
	RetryAfter time.Duration // 0 if allowed; slice.Never if the cost can never fit
	ResetAfter time.Duration // until the account is as good as never used
}

// Take asks Redis to admit a request of n tokens under limit l, for a key of
// the named limiter. A refused request is not charged. n = 0 is [Store.Peek];
// n above the burst, and any n under a limit of 0, is refused without a call.
//
// It fails with [ErrInvalidCost] (n < 0), [ErrInvalidLimit], or what kept
// Redis from answering; then the Decision is zero and, unless Redis refused
// the command or could not be reached, the tokens may have been taken.
func (s *Store) Take(ctx context.Context, limiter, key string, l Limit, n int64) (Decision, error) {
	if n < 0 {
		return Decision{}, fmt.Errorf("%w: %d, allowed 0 to %d", ErrInvalidCost, n, int64(slice.MaxTokens))
	}
	if n == 0 {
		return s.Peek(ctx, limiter, key, l)
	}
	if err := l.Validate(); err != nil {
		return Decision{}, err
	}
	if l.count == 0 || n > l.burst {
		return Decision{Limit: l.burst, RetryAfter: slice.Never}, nil
	}
	g, err := s.settleOne(ctx, limiter, key, l.Rule(), slice.Usage{Needs: []slice.Need{{Cost: n, Count: 1}}})
	if err != nil {
		return Decision{}, err
	}
	d := decide(l, g)
	d.Allowed = g.Admitted[0] == 1
	if !d.Allowed {
		d.RetryAfter = slice.RetryAfter(l.Rule(), g, n)
	}
	return d, nil
}

// Peek reads the account and changes nothing. Allowed says whether a request of
// one token would be admitted now; it is false under a limit of 0, which is
// answered without a call.
func (s *Store) Peek(ctx context.Context, limiter, key string, l Limit) (Decision, error) {
	if err := l.Validate(); err != nil {
		return Decision{}, err
	}
	if l.count == 0 {
		return Decision{Limit: l.burst, RetryAfter: slice.Never}, nil
	}
	g, err := s.settleOne(ctx, limiter, key, l.Rule(), slice.Usage{})
	if err != nil {
		return Decision{}, err
	}
	d := decide(l, g)
	d.Allowed = d.Remaining > 0
	if !d.Allowed {
		d.RetryAfter = slice.RetryAfter(l.Rule(), g, 1)
	}
	return d, nil
}

// Reset makes the account as if nothing had been taken from it, except what
// nodes hold in slices. Its errors are those of [Store.Take].
func (s *Store) Reset(ctx context.Context, limiter, key string, l Limit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	_, err := s.settleOne(ctx, limiter, key, l.ResetRule(), slice.Usage{Charged: -slice.MaxTokens})
	return err
}

// decide describes an account as it is after a settle.
func decide(l Limit, g slice.Grant) Decision {
	free := math.Floor(float64(l.burst) - g.Used)
	return Decision{
		Limit:      l.burst,
		Remaining:  int64(max(0, free)),
		ResetAfter: slice.ResetAfter(l.Rule(), g),
	}
}

func (s *Store) settleOne(ctx context.Context, limiter, key string, rule slice.Rule, u slice.Usage) (slice.Grant, error) {
	e := slice.Settle{Account: s.Account(limiter, CellKey(key)), Rule: rule, Usage: u}
	s.Settle(ctx, []*slice.Settle{&e})
	if e.Outcome != slice.Ran {
		return slice.Grant{}, fmt.Errorf("hybrid: settle %s: %w", e.Outcome, e.Err)
	}
	return e.Grant, nil
}
