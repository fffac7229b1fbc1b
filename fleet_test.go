package hybrid

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/slice"
)

// fleet is several nodes on one embedded store, in the virtual time of a
// synctest bubble: the real code, deterministic and without waiting.
type fleet struct {
	t     *testing.T
	mini  *miniredis.Miniredis
	nodes []*Node
	lims  []*Limiter
	rdbs  []*redis.Client
	store *exact.Store // of the first node, for the names of accounts
	rtt   func() time.Duration

	mu       sync.Mutex
	requests map[string][]oracle.Request   // by key: as callers saw them
	admitted map[string][]oracle.Admission // by account key: with the time that counts
	count    int
}

// fleetSetup says how a fleet is made; the zero value of a field is a default.
type fleetSetup struct {
	nodes   int // default 20
	limit   Limit
	options Options
	limiter LimiterOptions
	rtt     func() time.Duration // default 600 µs
	client  func(*redis.Options)
}

// inBubble runs a test of a fleet in virtual time and closes the fleet.
func inBubble(t *testing.T, setup fleetSetup, test func(f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, setup)
		test(f)
		f.close()
	})
}

func newFleet(t *testing.T, setup fleetSetup) *fleet {
	f := &fleet{t: t, mini: miniredis.NewMiniRedis(), rtt: setup.rtt,
		requests: map[string][]oracle.Request{}, admitted: map[string][]oracle.Admission{}}
	f.mini.ClockTTL(true)
	if f.rtt == nil {
		f.rtt = func() time.Duration { return 600 * time.Microsecond }
	}
	for range orDefault(setup.nodes, 20) {
		f.add(setup)
	}
	return f
}

// add makes one more node.
func (f *fleet) add(setup fleetSetup) *Node {
	f.t.Helper()
	opts := &redis.Options{Addr: "127.0.0.1:6379", Dialer: f.dial}
	if setup.client != nil {
		setup.client(opts)
	}
	rdb := redis.NewClient(opts)
	store, err := exact.New(rdb, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.rdbs = append(f.rdbs, rdb)
	f.store = store
	if setup.options.Logger == nil {
		setup.options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	full, err := setup.options.withDefaults()
	if err != nil {
		f.t.Fatal(err)
	}
	n := newNode(&tracedStore{Store: store, f: f}, full)
	l, err := n.Limiter("api", setup.limit, &setup.limiter)
	if err != nil {
		f.t.Fatal(err)
	}
	f.nodes, f.lims = append(f.nodes, n), append(f.lims, l)
	return n
}

func (f *fleet) close() {
	var all sync.WaitGroup
	for _, n := range f.nodes {
		all.Go(func() {
			if err := n.Close(); err != nil {
				f.t.Errorf("Close: %v", err)
			}
		})
	}
	all.Wait()
	for _, rdb := range f.rdbs {
		_ = rdb.Close() // the node leaves it to whoever made it
	}
	f.mini.Close()
}

// tracedStore notes what the store admits, with the store's own time.
type tracedStore struct {
	*exact.Store
	f *fleet
}

func (s *tracedStore) Settle(ctx context.Context, batch []*slice.Settle) {
	s.Store.Settle(ctx, batch)
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	for _, st := range batch {
		if st.Outcome != slice.Ran {
			continue
		}
		for i, need := range st.Usage.Needs {
			for range st.Grant.Admitted[i] {
				s.f.admitted[st.Account] = append(s.f.admitted[st.Account],
					oracle.Admission{At: st.Grant.Clock * 1000, Cost: need.Cost})
			}
		}
	}
}

// dial connects to the embedded store with half a round trip on each way.
func (f *fleet) dial(context.Context, string, string) (net.Conn, error) {
	conn, err := f.mini.Dial()
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: conn, f: f}, nil
}

type slowConn struct {
	net.Conn
	f *fleet
}

func (c *slowConn) Write(p []byte) (int, error) {
	time.Sleep(c.f.rtt() / 2)
	return c.Conn.Write(p)
}

func (c *slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	time.Sleep(c.f.rtt() / 2)
	return n, err
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
	f.count++
	f.requests[key] = append(f.requests[key], oracle.Request{At: at, Cost: cost, Allowed: r.Allowed})
	if r.Allowed && r.Path != PathExact {
		account := f.account(key)
		f.admitted[account] = append(f.admitted[account], oracle.Admission{At: time.Now().UnixNano(), Cost: cost})
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
	return f.store.Account("api", exact.CellKey(key))
}

// place chooses the node of the i-th request, at a time since the start.
type place func(f *fleet, rng *rand.Rand, since time.Duration) int

func uniform(f *fleet, rng *rand.Rand, _ time.Duration) int { return rng.IntN(len(f.lims)) }
func oneNode(*fleet, *rand.Rand, time.Duration) int         { return 0 }

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

// checkBound fails the test if any key's admissions exceed (1+over) of a limit
// in any interval.
func (f *fleet) checkBound(l Limit, over float64) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for account, list := range f.admitted {
		if err := oracleOf(l).Over(over).Check(list).Err(); err != nil {
			f.t.Errorf("%s, %v over %v: %v", account, l, over, err)
		}
	}
}

// checkCost fails the test if Redis executed more operations than there were
// requests.
func (f *fleet) checkCost() {
	f.t.Helper()
	if ops := f.stats().Operations; ops > uint64(f.count) {
		f.t.Errorf("%d operations for %d requests", ops, f.count)
	}
}

func oracleOf(l Limit) oracle.Limit {
	if l.Windowed() {
		return oracle.NewWindow(l.Count(), l.Period())
	}
	return oracle.New(l.Count(), l.Period(), l.Burst())
}
