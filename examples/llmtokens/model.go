package main

import (
	"context"
	"errors"
	"iter"
	"time"
)

// chunk is how many tokens a model sends at a time.
const chunk = 50

// stream stands for a model that writes an answer of so many tokens: chunk by chunk,
// until it is done or its reader has gone.
func stream(ctx context.Context, tokens int64, pause time.Duration) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for tokens > 0 && ctx.Err() == nil {
			n := min(tokens, chunk)
			tokens -= n
			if !yield(n) {
				return
			}
			time.Sleep(pause)
		}
	}
}

// request is a question of a customer.
type request struct {
	customer string
	estimate int64         // tokens: the prompt, and max_tokens
	answer   int64         // tokens that the model would write, which nobody knows before
	pause    time.Duration // between chunks
	leaves   int64         // tokens after which the reader goes away; 0: it stays
}

// serve writes an answer, and settles whatever happens on the way.
func (r request) serve(ctx context.Context, c *call) (err error) {
	defer func() { err = errors.Join(err, c.settle(ctx)) }()
	reader, leave := context.WithCancel(ctx)
	defer leave()
	for n := range stream(reader, r.answer, r.pause) {
		if err := c.use(ctx, n); err != nil {
			return err
		}
		if r.leaves > 0 && c.used >= r.leaves {
			leave()
		}
	}
	return nil
}
