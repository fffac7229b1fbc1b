// Package batch sends settles to the store: what is ready when a call can be made goes
// with it, so batches form by themselves under load and nothing waits without it.
//
// It moves jobs and knows nothing of what a settle means: a [Job] makes its settle at the
// last moment, so that requests which join before that share it, and takes the outcome.
//
// The store may have parts that fail alone, such as the shards of a cluster. Each is a
// [Shard] with a queue, calls and a [Breaker] of its own: what hangs or fails there does
// not hold up the others.
//
// Times are nanoseconds of the node's monotonic clock.
package batch

import (
	"context"
	"errors"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Job is an account whose settle was started.
type Job interface {
	// Prepare makes the settle to send now; nil if there is nothing to tell. ok is false
	// if the job was queued in the background and has been sent since. No lock is held.
	Prepare(background bool, now int64) (st *slice.Settle, ok bool)

	// Done ends the settle that Prepare made, nil included. sent is false if the store is
	// silent and it was not sent at all.
	Done(st *slice.Settle, sent bool)
}

// Config is what a Batcher is made of. All fields are required.
type Config struct {
	Shards      int
	Now         func() int64
	Send        func(ctx context.Context, batch []*slice.Settle) // executes each once at most; may block
	Timeout     time.Duration                                    // that one request waits at most
	CallTimeout time.Duration                                    // after which a call counts as lost
	Failed      func(err error)                                  // a settle was not executed, or may not have been; must not block
	Changed     func(open bool, cause error)                     // the store has become silent, or is back; must not block
}

// What is said of the store where it says nothing itself.
var (
	ErrSlow    = errors.New("more than one call in twenty took longer than StoreTimeout")
	ErrDown    = errors.New("the store does not answer")
	ErrTimeout = errors.New("no answer from the store in time")
)
