// Package batch sends settles to the store: what is ready when a call can be made goes
// with it, so batches form by themselves under load and nothing waits without it.
//
// It moves jobs and knows nothing of what a settle means: a [Job] makes its settle at the
// last moment, so that requests which join before that share it, and takes the outcome.
//
// The store may have parts that fail alone, such as the shards of a cluster. Each is a
// [Shard] with queues, calls and a breaker of its own: what hangs or fails there does not
// hold up the others.
//
// Times are nanoseconds of the node's monotonic clock.
package batch

import (
	"context"
	"errors"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Job is an account whose settle was started. All methods are called without locks.
type Job interface {
	// Refresh comes before Prepare, and before the time of the call begins: what user
	// code takes in it is not the store's delay. Jobs that are not sent are not refreshed.
	Refresh(now int64)

	// Prepare makes the settle to send now; nil if there is nothing to tell. ok is false
	// if the job's place in line is void: it was queued in the background and has been
	// sent since. Then Done does not follow.
	Prepare(background bool, now int64) (st *slice.Settle, ok bool)

	// Done ends the settle that Prepare made, nil included. st has its outcome; after a
	// call without a reply it is another Settle, which shares nothing that the call may
	// still write. sent is false if the shard is down and st was not sent at all.
	Done(st *slice.Settle, sent bool)
}

// Config is what a Batcher is made of. All fields are required. The callbacks must not
// block, and are called from any goroutine.
type Config struct {
	Shards      int
	Now         func() int64
	Send        func(ctx context.Context, batch []*slice.Settle) // executes each once at most; may block
	Timeout     time.Duration                                    // how long a request waits: what takes longer is slow
	CallTimeout time.Duration                                    // after which a call counts as lost

	Failed       func(err error)              // a settle was not executed, or may not have been
	ShardChanged func(shard int, down bool)   // a breaker has opened or closed
	Changed      func(down bool, cause error) // the first breaker has opened, or the last one has closed
}

// Causes that the store does not name itself.
var (
	ErrSlow    = errors.New("more than one call in twenty took longer than StoreTimeout")
	ErrDown    = errors.New("the store does not answer")
	ErrTimeout = errors.New("no answer from the store in time")
)
