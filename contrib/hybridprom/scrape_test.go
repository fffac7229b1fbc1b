package hybridprom

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// tally is what callers were told by one limiter.
type tally struct {
	limiter *hybrid.Limiter

	mu       sync.Mutex
	tokens   float64                        // admitted from slices
	answers  map[hybrid.Path]map[string]int // of all other requests
	shadowed int
}

func newTally(l *hybrid.Limiter) *tally {
	answers := map[hybrid.Path]map[string]int{}
	for p := hybrid.PathFloor; p <= hybrid.PathFallback; p++ {
		answers[p] = map[string]int{}
	}
	return &tally{limiter: l, answers: answers}
}

func (c *tally) ask(t *testing.T, key string, n int64) {
	r := allow(t, c.limiter, key, n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Shadowed {
		c.shadowed++
	}
	switch {
	case r.Path == hybrid.PathSlice:
		c.tokens += float64(n)
	case r.Allowed && !r.Shadowed:
		c.answers[r.Path]["allowed"]++
	default:
		c.answers[r.Path]["denied"]++
	}
}

// check compares what callers were told with what was scraped.
func (c *tally) check(t *testing.T, s samples) {
	t.Helper()
	name := c.limiter.Name()
	for path, results := range c.answers {
		for _, result := range []string{"allowed", "denied"} {
			series := fmt.Sprintf("hybrid_decisions_total{limiter=%q, path=%q, result=%q}", name, path, result)
			// A denial from a memory that is replaced at that moment may not be counted.
			lost := 0.0
			if path == hybrid.PathMemo {
				lost = 5
			}
			if got, there := s[series]; got > float64(results[result]) || got < float64(results[result])-lost {
				t.Errorf("%s is %v (there: %t), callers counted %d", series, got, there, results[result])
			}
		}
	}
	s.want(t, fmt.Sprintf("hybrid_slice_tokens_total{limiter=%q}", name), c.tokens)
	s.want(t, fmt.Sprintf("hybrid_shadowed_requests_total{limiter=%q}", name), float64(c.shadowed))
}

// A node of two serves a mixed load on a real Redis; what is scraped over HTTP is
// what its callers were told.
func TestScrapedNumbersAreWhatWasDone(t *testing.T) {
	server := redistest.Start(t)
	node, other := newNode(t, server.Addr, func(o *hybrid.Options) { o.MaxKeys = 5000 }), newNode(t, server.Addr)
	tallies := []*tally{
		newTally(newLimiter(t, node, "api", hybrid.PerMinute(1000), nil)),
		newTally(newLimiter(t, node, "login", hybrid.PerMinute(5), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})),
		newTally(newLimiter(t, node, "trial", hybrid.PerMinute(30), &hybrid.LimiterOptions{Shadow: true})),
	}
	newLimiter(t, other, "api", hybrid.PerMinute(1000), nil)
	metrics := fresh(t, node)

	const callers, requests, keys = 8, 400, 40
	var wg sync.WaitGroup
	for caller := range callers {
		rng := rand.New(rand.NewPCG(uint64(caller), 7))
		wg.Go(func() {
			for range requests {
				c := tallies[rng.IntN(len(tallies))]
				c.ask(t, fmt.Sprint("user", rng.IntN(keys)), 1+rng.Int64N(3))
			}
			for _, c := range tallies {
				c.ask(t, "user1", tooMuch)
			}
		})
	}
	wg.Wait()
	if err := node.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}

	s := metrics.scrape()
	for _, c := range tallies {
		c.check(t, s)
	}
	checkBooks(t, s, node.Stats())
	redistest.Eventually(t, "the nodes have seen each other", func() bool {
		return metrics.scrape()[`hybrid_fleet_nodes{limiter="api"}`] == 2
	})
	s.want(t, `hybrid_keys{limiter="api"}`, keys)
	s.want(t, "hybrid_max_keys", 5000)
	s.want(t, "hybrid_store_up", 1)
	s.want(t, "hybrid_evictions_total", 0)
	s.want(t, `hybrid_overshoot_ratio{limiter="api"}`, 0.1)
	s.want(t, `hybrid_overshoot_ratio{limiter="login"}`, 0)
	if lag := metrics.scrape()["hybrid_store_sync_lag_seconds"]; lag < 0 || lag > 10 {
		t.Errorf("Redis is there, and last answered %v s ago", lag)
	}
}

// checkBooks compares numbers that must fit each other, in a scrape of a node
// that had all its answers, and in what the node itself says a moment later.
func checkBooks(t *testing.T, s samples, stats hybrid.Stats) {
	t.Helper()
	operations := s.sum("hybrid_operations_total")
	if failed := s.sum("hybrid_operations_not_run_total") + s.sum("hybrid_operations_unknown_total"); failed != 0 {
		t.Errorf("%v operations failed", failed)
	}
	calls := s["hybrid_store_calls_total"]
	if calls < 1 || operations < calls {
		t.Errorf("%v operations in %v calls", operations, calls)
	}
	s.want(t, "hybrid_store_call_duration_seconds_count", calls)
	s.want(t, "hybrid_store_call_operations_count", calls)
	s.want(t, "hybrid_store_call_operations_sum", operations)
	s.want(t, `hybrid_store_call_operations_bucket{le="+Inf"}`, calls)
	if mean := s["hybrid_store_call_duration_seconds_sum"] / calls; mean <= 0 || mean > 1 {
		t.Errorf("a call takes %v s on average", mean)
	}
	if blocked := s.sum("hybrid_blocked_requests_total"); blocked < 1 || blocked > float64(stats.Total.Blocked) {
		t.Errorf("%v requests waited for Redis, of %d", blocked, stats.Total.Blocked)
	}
	granted, used := s.sum("hybrid_slice_granted_tokens_total"), s.sum("hybrid_slice_tokens_total")
	gone := s.sum("hybrid_slice_returned_tokens_total") + s.sum("hybrid_slice_expired_tokens_total")
	if used < 1 || used+gone > granted {
		t.Errorf("of %v tokens granted, %v were used and %v came to nothing", granted, used, gone)
	}
	for series, v := range map[string]uint64{
		"hybrid_operations_total":           stats.Total.Operations,
		"hybrid_slice_granted_tokens_total": stats.Total.Granted,
	} {
		if got := s.sum(series); got < 1 || got > float64(v) {
			t.Errorf("%s is %v, and %d a moment later", series, got, v)
		}
	}
}

// What the node knows of keys and nodes follows it.
func TestGaugesFollow(t *testing.T) {
	node := newNode(t, nowhere, func(o *hybrid.Options) { o.MaxKeys = 64; o.StoreTimeout = 20 * time.Millisecond })
	metrics := fresh(t, node)
	api := newLimiter(t, node, "api", hybrid.PerMinute(1000), nil)
	for i := range 10 {
		allow(t, api, fmt.Sprint(i), 1)
	}
	metrics.scrape().want(t, `hybrid_keys{limiter="api"}`, 10)
	for i := range 2000 {
		allow(t, api, fmt.Sprint(i), 1)
	}
	s := metrics.scrape()
	if keys, gone := s[`hybrid_keys{limiter="api"}`], s["hybrid_evictions_total"]; keys > 64 || keys < 1 || gone < 1900 {
		t.Errorf("%v keys of 64 are remembered, %v were forgotten", keys, gone)
	}
	s.want(t, `hybrid_fleet_nodes{limiter="api"}`, 0)
}
