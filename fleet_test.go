package hybrid

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// fleet is several nodes on one embedded store, in the virtual time of a
// synctest bubble: the real code, deterministic and without waiting.
type fleet struct {
	t     *testing.T
	mini  *miniredis.Miniredis // nil on a real Redis
	nodes []*Node
	lims  []*Limiter
	links []*redistest.Link // each node's way to the store
	gone  []bool            // nodes that were killed or left
	truth *exact.Store      // sees the store as it is, without faults or delays
	admin *redis.Client     // of truth
	rtt   func() time.Duration
	skew  time.Duration // of the store's clock against the nodes'
	addr  string        // of a real Redis; empty: mini

	ending sync.WaitGroup // nodes that are on their way out

	mu       sync.Mutex
	requests map[string][]oracle.Request   // by key: as callers saw them
	admitted map[string][]oracle.Admission // by account key: with the time that counts
	verdicts map[verdict][]int64           // admissions by the store that no caller has seen yet: when, ns
	settling map[string]int                // by node and account: settles under way
	tally
}

// verdict names what the store admits: to whom, of what, how much.
type verdict struct {
	node    int
	account string
	cost    int64
}

// fleetSetup says how a fleet is made; the zero value of a field is a default.
type fleetSetup struct {
	nodes   int // default 20
	limit   Limit
	options Options
	limiter LimiterOptions
	rtt     func() time.Duration // default 600 µs
	skew    time.Duration        // how far the store's clock is ahead of the nodes'
	addr    string               // of a real Redis; empty: an embedded one
}

// inBubble runs a test of a fleet in virtual time and closes the fleet.
func inBubble(t *testing.T, setup fleetSetup, test func(f *fleet)) {
	t.Helper()
	redistest.InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) {
		f := newFleet(t, setup, mini)
		test(f)
		f.leaveAll()
	})
}

// onRedis runs a test of a fleet on a Redis server of its own, in real time.
// Round trips are what they are, and nodes wait for them as long as a busy
// machine may take.
func onRedis(t *testing.T, setup fleetSetup, test func(f *fleet)) {
	t.Helper()
	setup.addr = redistest.Start(t).Addr
	setup.options.StoreTimeout = cmp.Or(setup.options.StoreTimeout, time.Second)
	if setup.rtt == nil {
		setup.rtt = undelayed
	}
	f := newFleet(t, setup, nil)
	test(f)
	f.leaveAll()
}

// undelayed is the round trip of a link that adds nothing.
func undelayed() time.Duration { return 0 }

func newFleet(t *testing.T, setup fleetSetup, mini *miniredis.Miniredis) *fleet {
	f := &fleet{t: t, mini: mini, rtt: setup.rtt, skew: setup.skew, addr: setup.addr,
		requests: map[string][]oracle.Request{}, admitted: map[string][]oracle.Admission{},
		verdicts: map[verdict][]int64{}, settling: map[string]int{}}
	f.admin = f.link(undelayed).Client(t)
	f.truth = f.storeOf(f.admin)
	for range cmp.Or(setup.nodes, 20) {
		f.add(setup)
	}
	return f
}

func (f *fleet) storeOf(rdb *redis.Client) *exact.Store {
	f.t.Helper()
	store, err := exact.New(rdb, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return store
}

// add makes one more node.
func (f *fleet) add(setup fleetSetup) *Node {
	f.t.Helper()
	way := f.link(f.rtt)
	if setup.options.Logger == nil {
		setup.options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	full, err := setup.options.withDefaults()
	if err != nil {
		f.t.Fatal(err)
	}
	n := newNode(&tracedStore{Store: f.storeOf(way.Client(f.t)), f: f, node: len(f.nodes)}, full)
	l, err := n.Limiter("api", setup.limit, &setup.limiter)
	if err != nil {
		f.t.Fatal(err)
	}
	f.nodes, f.lims = append(f.nodes, n), append(f.lims, l)
	f.links, f.gone = append(f.links, way), append(f.gone, false)
	return n
}

// leave ends a node in order.
func (f *fleet) leave(node int) {
	f.gone[node] = true
	n, way := f.nodes[node], f.links[node]
	f.ending.Go(func() {
		if err := n.Close(); err != nil && way.Sound() {
			f.t.Errorf("Close: %v", err)
		}
	})
}

// kill ends a node as a crash does: the store hears nothing of it any more.
func (f *fleet) kill(node int) {
	f.gone[node] = true
	f.links[node].Cut(true)
	n := f.nodes[node]
	f.ending.Go(func() { _ = n.Close() }) // ends its goroutines; it reaches nobody
}

// ask sends one request to a node and notes the answer.
func (f *fleet) ask(node int, key string, cost int64) Result {
	at := time.Now().UnixNano()
	r, err := f.lims[node].AllowN(context.Background(), key, cost)
	if err != nil {
		f.t.Errorf("AllowN: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tally.requests++
	f.requests[key] = append(f.requests[key], oracle.Request{At: at, Cost: cost, Allowed: r.Allowed})
	if r.Allowed {
		f.note(node, f.account(key), cost, r.Path)
	}
	if !r.Allowed && r.RetryAfter <= 0 {
		f.t.Errorf("denied with RetryAfter %v", r.RetryAfter)
	}
	if r.Remaining < 0 || r.Remaining > r.Limit {
		f.t.Errorf("Remaining %d of Limit %d", r.Remaining, r.Limit)
	}
	return r
}

func (f *fleet) account(key string) string {
	return f.truth.Account("api", exact.CellKey(key))
}

// place chooses the node of the i-th request, at a time since the start.
type place func(f *fleet, rng *rand.Rand, since time.Duration) int

func uniform(f *fleet, rng *rand.Rand, _ time.Duration) int { return rng.IntN(len(f.lims)) }

// hopping sends 90 % to a node that changes ten times a minute.
func hopping(f *fleet, rng *rand.Rand, since time.Duration) int {
	if rng.IntN(10) == 0 {
		return rng.IntN(len(f.lims))
	}
	return int(since/(6*time.Second)) * 7 % len(f.lims)
}

// adversarial sends each request to the node with the fewest tokens.
func adversarial(f *fleet, rng *rand.Rand, _ time.Duration) int {
	least, at := int64(1<<62), 0
	for i := range f.lims {
		j := (i + rng.IntN(len(f.lims))) % len(f.lims)
		var tokens int64
		if a, ok := f.lims[j].core.Load("k"); ok {
			tokens = a.Cell.Alive(f.lims[j].dead)
		}
		if tokens < least {
			least, at = tokens, j
		}
	}
	return at
}

// load offers Poisson arrivals at a rate (requests per second) for a time.
func (f *fleet) load(rng *rand.Rand, rate float64, d time.Duration, where place, cost int64) {
	start := time.Now()
	var pending sync.WaitGroup
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() / rate * float64(time.Second))
		if at > d {
			break
		}
		time.Sleep(at - time.Since(start))
		node := where(f, rng, at)
		pending.Go(func() { f.ask(node, "k", cost) })
	}
	time.Sleep(d - time.Since(start))
	pending.Wait()
}

// stats sums the fleet's counts.
func (f *fleet) stats() (total LimiterStats) {
	for _, n := range f.nodes {
		total.add(n.Stats().Total)
	}
	return total
}
