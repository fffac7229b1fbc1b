package main

import (
	"context"
	"sync/atomic"

	"github.com/hybridlimit/hybrid"
)

// budget is how many tokens of a language model each customer may use. What an
// answer costs is known when it has been written, but whether it may be written
// must be known before: so an estimate is reserved, and settled afterwards.
type budget struct {
	limiter *hybrid.Limiter

	// The books, in tokens: what was used is reserved − refunded + charged.
	reserved, refunded, charged, used atomic.Int64
}

// call is one answer that is being written. It belongs to one goroutine.
type call struct {
	budget   *budget
	customer string
	estimate int64
	used     int64
}

// reserve takes an estimate out of a customer's budget: the prompt and the longest
// answer that the request allows. A denied request has no call.
func (b *budget) reserve(ctx context.Context, customer string, estimate int64) (*call, hybrid.Result, error) {
	res, err := b.limiter.AllowN(ctx, customer, estimate)
	if err != nil || !res.Allowed {
		return nil, res, err
	}
	b.reserved.Add(estimate)
	return &call{budget: b, customer: customer, estimate: estimate}, res, nil
}

// use notes tokens as they stream by. What goes beyond the estimate is charged at
// once and not at the end: no other request is to be admitted on it while a long answer
// is still being written. The limiter does not refuse it, as the tokens are gone;
// the customer runs into debt, of one burst at most.
func (c *call) use(ctx context.Context, n int64) error {
	beyond := c.used + n - max(c.used, c.estimate)
	c.used += n
	c.budget.used.Add(n)
	if beyond <= 0 {
		return nil
	}
	c.budget.charged.Add(beyond)
	return c.budget.limiter.Charge(c.customer, beyond)
}

// settle gives back what was not used. It must be called once, however the answer
// ended: defer it.
func (c *call) settle(ctx context.Context) error {
	left := c.estimate - c.used
	if left <= 0 {
		return nil
	}
	c.budget.refunded.Add(left)
	return c.budget.limiter.Refund(c.customer, left)
}
