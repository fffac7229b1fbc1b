package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid"
)

// settled is a budget's books, when nobody writes any more.
type settled struct{ reserved, refunded, charged, used int64 }

func (b *budget) books() settled {
	return settled{b.reserved.Load(), b.refunded.Load(), b.charged.Load(), b.used.Load()}
}

// booked is what the limiter was told of.
func (s settled) booked() int64 { return s.reserved - s.refunded + s.charged }

func (s settled) less(o settled) settled {
	return settled{s.reserved - o.reserved, s.refunded - o.refunded, s.charged - o.charged, s.used - o.used}
}

var errDenied = errors.New("denied, with nothing used")

// alone is two answers, one after the other.
func alone(ctx context.Context, b *budget) (books [2]settled, err error) {
	for i, r := range []request{
		{customer: "solo", estimate: 1200, answer: 420},
		{customer: "solo", estimate: 1200, answer: 900, leaves: 100},
	} {
		before := b.books()
		c, res, err := b.reserve(ctx, r.customer, r.estimate)
		if err != nil {
			return books, err
		}
		if !res.Allowed {
			return books, errDenied
		}
		if err := r.serve(ctx, c); err != nil {
			return books, err
		}
		books[i] = b.books().less(before)
	}
	return books, nil
}

const (
	workers  = 8
	estimate = 1000 // tokens reserved for each answer
	longest  = 1200 // tokens of an answer, at most: now and then more than reserved
)

// crowd is many answers at the same time.
type crowd struct {
	settled
	answers, denied int64
	inRedis         int64 // tokens used, as Redis has it
	free            int64 // tokens left, as Redis has it
}

// together lets workers write answers for one customer until its budget does not
// hold another one.
func together(ctx context.Context, node *hybrid.Node, b *budget) (crowd, error) {
	var answers, denied atomic.Int64
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for errs[i] == nil {
				r := request{customer: "acme", estimate: estimate, answer: 100 + rng.Int64N(longest-99), pause: time.Millisecond}
				c, res, err := b.reserve(ctx, r.customer, r.estimate)
				if err == nil && !res.Allowed {
					denied.Add(1)
					return
				}
				if err == nil {
					answers.Add(1)
					err = r.serve(ctx, c)
				}
				errs[i] = err
			}
		})
	}
	all.Wait()
	c := crowd{settled: b.books(), answers: answers.Load(), denied: denied.Load()}
	return c, errors.Join(append(errs, c.ask(ctx, node, b))...)
}

// ask compares with Redis, which has heard of everything after a Flush.
func (c *crowd) ask(ctx context.Context, node *hybrid.Node, b *budget) error {
	if err := node.Flush(ctx); err != nil {
		return err
	}
	res, err := b.limiter.Peek(ctx, "acme")
	c.free, c.inRedis = res.Remaining, res.Limit-res.Remaining
	return err
}

// debt is an answer that became far too long, and what comes after it.
type debt struct {
	settled
	retry  time.Duration // what the next request was told first
	denied int
	waited time.Duration // from the end of the long answer until the next was admitted
}

// runaway uses ten bursts at once. The tokens are gone, so they are charged; but a
// debt of more than one burst would deny the customer for longer than anybody
// wants to explain, and is forgotten.
func runaway(ctx context.Context, node *hybrid.Node, b *budget) (debt, error) {
	r := request{customer: "acme", estimate: estimate, answer: 10 * perSecond.Burst(), pause: 100 * time.Microsecond}
	c, res, err := b.reserve(ctx, r.customer, r.estimate)
	if err != nil {
		return debt{}, err
	}
	if !res.Allowed {
		return debt{}, errDenied
	}
	if err := r.serve(ctx, c); err != nil {
		return debt{}, err
	}
	end, d := time.Now(), debt{settled: b.books()}
	if err := node.Flush(ctx); err != nil { // or wait for the next sync
		return d, err
	}
	for {
		next, res, err := b.reserve(ctx, r.customer, r.estimate)
		switch {
		case err != nil:
			return d, err
		case res.Allowed:
			d.waited = time.Since(end)
			return d, next.settle(ctx)
		case d.denied == 0:
			d.retry = res.RetryAfter
		case d.denied == 100:
			return d, fmt.Errorf("denied %d times after a debt: retry after %v", d.denied, res.RetryAfter)
		}
		d.denied++
		time.Sleep(res.RetryAfter)
	}
}
