package chaos

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// This file records histories: clients that ask nodes, and clients that ask the
// store itself, all for one account.

const (
	linearNodes  = 3 // with two clients each
	linearDirect = 2 // clients of the store
	mostCost     = 4
)

// linearWorld is a server, nodes and stores, each with a way of its own to it.
type linearWorld struct {
	t       testing.TB
	began   time.Time
	server  *redistest.Server
	admin   *redis.Client
	proxies []*redistest.Proxy // of the nodes, then of the stores
	nodes   []*hybrid.Node
	stores  []*exact.Store
}

// newLinearWorld gives the store so long to answer.
func newLinearWorld(t testing.TB, timeout time.Duration) *linearWorld {
	w := &linearWorld{t: t, began: time.Now(), server: redistest.Start(t)}
	w.admin = w.server.Client(t)
	for i := range linearNodes + linearDirect {
		p := redistest.NewProxy(t, w.server.Addr)
		rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ReadTimeout: 5 * timeout, DialTimeout: 5 * timeout})
		t.Cleanup(func() { _ = rdb.Close() })
		w.proxies = append(w.proxies, p)
		if i < linearNodes {
			w.addNode(rdb, timeout)
		} else {
			w.addStore(rdb)
		}
	}
	return w
}

func (w *linearWorld) addNode(rdb *redis.Client, timeout time.Duration) {
	n, err := hybrid.New(rdb, &hybrid.Options{Servers: linearNodes, StoreTimeout: timeout, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = n.Close() })
	w.nodes = append(w.nodes, n)
}

func (w *linearWorld) addStore(rdb *redis.Client) {
	s, err := exact.New(rdb, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.stores = append(w.stores, s)
}

func (w *linearWorld) since() time.Duration { return time.Since(w.began) }

// session is one account and what its clients do to it.
type session struct {
	*linearWorld
	limiter  string
	key      string
	limit    exact.Limit
	limiters []*hybrid.Limiter // of the nodes
	calls    int               // per client at most
	pause    time.Duration     // between two calls of a client at most
	faulty   bool              // something fails
	adjusts  bool              // there are charges, refunds and resets, too
	seed     uint64

	mu   sync.Mutex
	ops  []op
	memo int // denials from memory that are left out
}

// limiters makes a limiter on each node.
func (w *linearWorld) limiters(name string, l exact.Limit, p hybrid.FailurePolicy) (all []*hybrid.Limiter) {
	w.t.Helper()
	for _, n := range w.nodes {
		lim, err := n.Limiter(name, l, &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: p})
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, lim)
	}
	return all
}

// record lets all clients work, and returns what they saw.
func (s *session) record() history {
	var clients sync.WaitGroup
	for c := range 2*linearNodes + linearDirect {
		rng := rand.New(rand.NewPCG(s.seed, uint64(c)))
		clients.Go(func() {
			for range s.calls {
				if !s.call(c, rng) {
					return // its next call could not be told from this one
				}
				time.Sleep(time.Duration(rng.Float64() * float64(s.pause)))
			}
		})
	}
	clients.Wait()
	s.remembered()
	return history{key: s.key, tokens: s.limit.Burst(), ops: s.ops}
}

// call does something, and returns whether its outcome is known.
func (s *session) call(client int, rng *rand.Rand) bool {
	o := op{client: client, verb: take, n: 1 + rng.Int64N(mostCost), used: unsaid}
	if s.adjusts {
		switch x := rng.IntN(60); {
		case x == 0:
			o.verb, o.n = reset, 0
		case x < 5 && !s.toldTwice(client):
			o.verb = charge
		case x < 10:
			o.verb, o.n = charge, -o.n
		}
	}
	o.from = s.since()
	var happened bool
	if node := client / 2; node < linearNodes {
		happened = s.askNode(node, &o)
	} else {
		happened = s.askStore(client-2*linearNodes, &o)
	}
	o.to = s.since()
	if happened {
		s.add(o)
	}
	return o.known != inDoubt
}

// toldTwice reports whether a client's charge may count twice: where replies are lost,
// a node tells it again. So only the store's are recorded there.
func (s *session) toldTwice(client int) bool { return s.faulty && client/2 < linearNodes }

func (s *session) add(o ...op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops = append(s.ops, o...)
}

// askStore makes a settle. What certainly did not run has not happened.
func (s *session) askStore(store int, o *op) (happened bool) {
	o.by = "store"
	st := &slice.Settle{Account: s.stores[store].Account(s.limiter, s.key), Rule: s.limit.Rule()}
	switch o.verb {
	case take:
		st.Usage.Needs = []slice.Need{{Cost: o.n, Count: 1}}
	case charge:
		st.Usage.Charged = float64(o.n)
	case reset:
		st.Usage.Charged = -slice.MaxTokens
	}
	s.stores[store].Settle(context.Background(), []*slice.Settle{st})
	switch {
	case st.Outcome == slice.NotRun:
		return false
	case st.Outcome == slice.Unknown:
		o.known = inDoubt
		return true
	case o.verb == take && st.Grant.Admitted[0] == 0:
		o.known = denied
	}
	o.used = int64(math.Round(st.Grant.Used)) // what is refilled meanwhile is a millionth of a token
	return true
}

// askNode makes a call.
func (s *session) askNode(node int, o *op) (happened bool) {
	o.by = "node"
	l, ctx := s.limiters[node], context.Background()
	switch o.verb {
	case charge:
		s.adjust(node, o)
		return true
	case reset:
		if l.Reset(ctx, s.key) != nil {
			o.known = inDoubt
		}
		return true
	}
	res, err := l.AllowN(ctx, s.key, o.n)
	if err != nil {
		s.t.Errorf("%v: %v", o, err)
	}
	o.by = res.Path.String()
	return s.understand(res, o)
}

// adjust charges or refunds, which the next settle takes to the store. It is
// done when that has been seen to.
func (s *session) adjust(node int, o *op) {
	adjust, n := s.limiters[node].Charge, o.n
	if n < 0 {
		adjust, n = s.limiters[node].Refund, -n
	}
	if err := adjust(s.key, n); err != nil {
		s.t.Errorf("%v: %v", o, err)
	}
	if s.nodes[node].Flush(context.Background()) != nil {
		o.known = inDoubt
	}
}

// understand reads a node's answer.
func (s *session) understand(res hybrid.Result, o *op) (happened bool) {
	switch {
	case res.Path == hybrid.PathFallback:
		o.known = inDoubt // the settle may have run, or may yet
		if res.Allowed {
			owed := *o
			owed.verb = owe
			s.add(owed)
		}
	case !res.Allowed:
		o.known = denied
		if res.Path == hybrid.PathMemo && s.forgetful() {
			s.skip()
			return false
		}
	case res.Path != hybrid.PathExact:
		s.t.Errorf("Exact admitted by %v", res.Path)
	}
	return true
}

// forgetful reports whether denials from memory are left out: where others give
// tokens back, a node may deny what it has seen denied for 10 s more; and where
// replies are lost and late, nobody can say how long after its window a denial
// is remembered. Where tokens do not come back, memory is as good as the store, and
// is held to the same; see also remembered.
func (s *session) forgetful() bool { return s.adjusts || s.limit.Windowed() && s.faulty }

func (s *session) skip() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memo++
}

// remembered lets denials from memory have come about earlier, by as long as a
// reply took at most: a node counts the rest of the window from when the reply
// arrived, and the store from when it wrote it. After a slow reply they say
// little, and are left out.
func (s *session) remembered() {
	if !s.limit.Windowed() {
		return
	}
	const slow = 10 * time.Millisecond
	var slowest time.Duration
	for _, o := range s.ops {
		if !o.fromMemory() {
			slowest = max(slowest, o.to-o.from)
		}
	}
	kept := s.ops[:0]
	for _, o := range s.ops {
		switch {
		case !o.fromMemory():
			kept = append(kept, o)
		case slowest > slow:
			s.memo++
		default:
			o.from -= slowest
			kept = append(kept, o)
		}
	}
	s.ops = kept
}

func (o op) fromMemory() bool { return o.by == hybrid.PathMemo.String() }
