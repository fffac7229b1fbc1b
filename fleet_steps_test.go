package hybrid

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is the steps that stories about fleets are told in.

// strict is the setup of a fleet that never admits more than a limit.
func strict(nodes int, limit Limit) fleetSetup {
	return fleetSetup{nodes: nodes, limit: limit, limiter: LimiterOptions{Accuracy: Strict}}
}

// both runs a story in virtual time and on a real Redis.
func both(t *testing.T, setup fleetSetup, story func(f *fleet)) {
	t.Run("virtual", func(t *testing.T) { inBubble(t, setup, story) })
	t.Run("redis", func(t *testing.T) { onRedis(t, setup, story) })
}

// longUnderRace skips a test that is long because it is much, and not because much
// happens at once.
func longUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("many requests, one after the other: under the race detector they only take longer")
	}
}

// everyone lets each node that is there ask so often, spread over a span, and
// returns how many were admitted.
func (f *fleet) everyone(calls int, span time.Duration, key string, cost int64) int {
	var all sync.WaitGroup
	var admitted atomic.Int64
	for node := range f.nodes {
		if f.gone[node] {
			continue
		}
		for i := range calls {
			all.Go(func() {
				time.Sleep(span * time.Duration(i) / time.Duration(calls))
				if f.ask(node, key, cost).Allowed {
					admitted.Add(1)
				}
			})
		}
	}
	all.Wait()
	return int(admitted.Load())
}

// exhaust asks all nodes in turn until none admits, and returns how many were
// admitted.
func (f *fleet) exhaust(key string, cost int64) (admitted int) {
	for {
		before := admitted
		for node := range f.nodes {
			for !f.gone[node] && f.ask(node, key, cost).Allowed {
				admitted++
			}
		}
		if admitted == before {
			return admitted
		}
	}
}

// state is how a key stands in the store, by a limit.
func (f *fleet) state(key string, l Limit) slice.Grant {
	f.t.Helper()
	st := &slice.Settle{Account: f.account(key), Rule: l.Rule()}
	f.truth.Settle(context.Background(), []*slice.Settle{st})
	if st.Outcome != slice.Ran {
		f.t.Fatalf("the store says nothing of %q: %v", key, st.Err)
	}
	return st.Grant
}

// ttl is how long the store will remember a key; 0 if it does not know it.
func (f *fleet) ttl(key string) time.Duration {
	f.t.Helper()
	d, err := f.admin.PTTL(context.Background(), f.account(key)).Result()
	switch {
	case err != nil:
		f.t.Fatal(err)
	case d == -1:
		f.t.Errorf("the account of %q has no TTL", key)
	}
	return max(d, 0)
}

// flush settles all nodes.
func (f *fleet) flush() {
	f.t.Helper()
	for i, n := range f.nodes {
		if err := n.Flush(context.Background()); err != nil && f.links[i].Sound() {
			f.t.Errorf("Flush: %v", err)
		}
	}
}

// leaveAll ends all nodes in order and waits until they are gone.
func (f *fleet) leaveAll() {
	for i := range f.nodes {
		if !f.gone[i] {
			f.leave(i)
		}
	}
	f.ending.Wait()
}

// used is the tokens admitted of a key, on any path.
func (f *fleet) used(key string) (tokens int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.admitted[f.account(key)] {
		tokens += a.Cost
	}
	return tokens
}
