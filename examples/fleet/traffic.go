package main

import (
	"context"
	"encoding/gob"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/zipf"
)

// traffic is the requests that one node is offered: a Poisson stream that does
// not wait for answers, so that a slow one delays no request after it. The
// choice of a node is uniform because each has a stream of its own.
type traffic struct {
	limiter *hybrid.Limiter
	gap     time.Duration // mean time between two requests
	length  time.Duration
	callers int
	rng     *rand.Rand
	keys    *zipf.Sampler

	begin  time.Time // monotonic; beginUnix is the same moment
	chunks [][]request
	due    chan *request
	ended  chan struct{}

	offered, admitted atomic.Int64
	fail              sync.Once
	failed            error
}

const (
	chunk = 8192                   // requests that are allocated together
	nap   = 500 * time.Microsecond // the least sleep of the generator
)

func newTraffic(j job, limiter *hybrid.Limiter) *traffic {
	seed := j.Config.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	perNode := float64(j.Config.Rate) / float64(j.Config.Nodes)
	return &traffic{
		limiter: limiter,
		gap:     time.Duration(float64(time.Second) / perNode),
		length:  time.Duration(j.Config.Seconds * float64(time.Second)),
		// Enough for every request to wait for Redis twice its longest.
		callers: min(16+int(2*perNode*j.Config.Timeout.Seconds()), 10_000),
		rng:     rand.New(rand.NewPCG(seed, uint64(j.Index))),
		keys:    zipf.New(j.Config.Keys, j.Config.Zipf),
		due:     make(chan *request, 1024),
		ended:   make(chan struct{}),
	}
}

// run offers the whole stream and returns when each request has its answer.
func (t *traffic) run(ctx context.Context, at time.Time) error {
	defer close(t.ended)
	// at came from another process: it has no monotonic clock reading.
	t.begin = time.Now().Add(time.Until(at))
	var callers sync.WaitGroup
	for range t.callers {
		callers.Go(func() { t.call(ctx) })
	}
	t.generate(ctx)
	close(t.due)
	callers.Wait()
	if t.failed != nil {
		return t.failed
	}
	return ctx.Err()
}

// generate hands out each request when it is due.
func (t *traffic) generate(ctx context.Context) {
	var due time.Duration
	for ctx.Err() == nil {
		due += time.Duration(t.rng.ExpFloat64() * float64(t.gap))
		if due >= t.length {
			return
		}
		if early := due - time.Since(t.begin); early > 0 {
			sleep(ctx, max(early, nap))
		}
		t.offered.Add(1)
		t.due <- t.next(due)
	}
}

// next is a new request; Lag holds the time it is due until it is called.
func (t *traffic) next(due time.Duration) *request {
	last := len(t.chunks) - 1
	if last < 0 || len(t.chunks[last]) == chunk {
		t.chunks = append(t.chunks, make([]request, 0, chunk))
		last++
	}
	t.chunks[last] = append(t.chunks[last], request{Key: uint32(t.keys.Draw(t.rng)), Lag: due})
	return &t.chunks[last][len(t.chunks[last])-1]
}

// call answers requests until there are none.
func (t *traffic) call(ctx context.Context) {
	beginUnix := t.begin.UnixNano()
	for r := range t.due {
		key := "user:" + strconv.Itoa(int(r.Key))
		called := time.Since(t.begin)
		res, err := t.limiter.Allow(ctx, key)
		r.Took = time.Since(t.begin) - called
		r.Lag = called - r.Lag
		r.At = beginUnix + int64(called)
		r.Allowed, r.Path = res.Allowed, res.Path
		if res.Allowed {
			t.admitted.Add(1)
		}
		if err != nil {
			t.fail.Do(func() { t.failed = err })
		}
	}
}

// tell reports progress until the stream has ended.
func (t *traffic) tell(out *gob.Encoder) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.ended:
			return
		case <-tick.C:
			p := progress{t.offered.Load(), t.admitted.Load()}
			if out.Encode(report{Progress: &p}) != nil {
				return
			}
		}
	}
}

// requests are all of the stream, once run has returned.
func (t *traffic) requests() []request {
	all := make([]request, 0, t.offered.Load())
	for _, c := range t.chunks {
		all = append(all, c...)
	}
	return all
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
