package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid"
)

// load is the traffic of one limiter. Some of its keys are far more popular than
// others.
type load struct {
	limiter *hybrid.Limiter
	part    float64 // of all requests
	keys    uint64
}

// loadsOn makes the limiters of the demo: one of each accuracy and policy.
func loadsOn(node *hybrid.Node) (loads []load, err error) {
	for _, l := range []struct {
		name  string
		limit hybrid.Limit
		opts  hybrid.LimiterOptions
		part  float64
		keys  uint64
	}{
		{"api", hybrid.PerMinute(600), hybrid.LimiterOptions{}, 0.7, 20_000},
		{"search", hybrid.PerSecond(5), hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: hybrid.FailOpen}, 0.15, 500},
		{"login", hybrid.PerMinute(5), hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed}, 0.05, 1000},
		{"export", hybrid.PerHour(50), hybrid.LimiterOptions{Shadow: true}, 0.1, 2000},
	} {
		limiter, err := node.Limiter(l.name, l.limit, &l.opts)
		if err != nil {
			return nil, err
		}
		loads = append(loads, load{limiter, l.part, l.keys})
	}
	return loads, nil
}

// callers is how many requests of one kind a node handles at a time.
const callers = 16

// work asks rate times a second in all, until ctx ends.
func (m *member) work(ctx context.Context, rate int) {
	var wg sync.WaitGroup
	for _, l := range m.loads {
		for range callers {
			wg.Go(func() { l.ask(ctx, callers/(l.part*float64(rate))) })
		}
	}
	wg.Wait()
}

// ask asks every so many seconds, on average.
func (l *load) ask(ctx context.Context, every float64) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	popular := rand.NewZipf(rng, 1.1, 5, l.keys-1)
	for sleep(ctx, time.Duration(rng.ExpFloat64()*every*float64(time.Second))) {
		// What is answered is in the metrics; an error is that of ctx, at the end.
		_, _ = l.limiter.Allow(ctx, fmt.Sprint("client", popular.Uint64()))
	}
}
