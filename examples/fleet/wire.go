package main

import (
	"time"

	"github.com/hybridlimit/hybrid"
)

// A node and the program that runs the fleet talk in gob over two pipes,
// whether the node is a goroutine or a process:
//
//	to the node      job, then start, then the end of the pipe: stop at once
//	from the node    report: ready, then progress now and then, then the result

// job is what one node is to do.
type job struct {
	Config config
	Index  int
	Redis  string // URL
	Prefix string
}

// start is when traffic begins.
type start struct{ At time.Time }

// report is one message of a node; exactly one of its fields is set.
type report struct {
	Ready    bool
	Progress *progress
	Result   *result
	Failed   string
}

// progress counts requests so far.
type progress struct{ Offered, Admitted int64 }

// result is all that a node saw.
type result struct {
	Requests []request
	Stats    hybrid.LimiterStats
	Calls    uint64 // to Redis that carried operations
	Downs    uint64 // how often the node gave Redis up
}

// request is one request and its answer.
type request struct {
	Key     uint32 // its rank, 1 is the hottest
	Path    hybrid.Path
	Allowed bool
	At      int64         // when Allow was called, ns since the Unix epoch
	Lag     time.Duration // how late that was
	Took    time.Duration // how long Allow took
}
