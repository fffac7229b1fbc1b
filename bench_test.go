package hybrid

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
	"github.com/hybridlimit/hybrid/syncer"
)

// The benchmarks measure each path of a decision beside its own floor, in one
// run: what a map lookup and one atomic operation cost anyway, a clock reading, a
// script call of the same Redis. Absolute times differ between machines;
// TestSpeedRatios (speed_test.go) prints ratios.
//
//	go test -bench . -cpu 1,2,4 .

// generousStore grants far more than is asked for, so that a benchmark never
// leaves the slice. It refuses all needs of accounts once refuse is set.
type generousStore struct{ refuse atomic.Bool }

func (s *generousStore) Account(limiter, key string) string { return limiter + key }

func (s *generousStore) Settle(_ context.Context, batch []*slice.Settle) {
	for _, st := range batch {
		g := slice.Grant{Tag: slice.Tag{Epoch: 1}, Life: 120e6, Now: 1e6, Clock: 1e6}
		for _, need := range st.Usage.Needs {
			if s.refuse.Load() {
				g.Used = float64(st.Rule.Burst) * 2
				need.Count = 0
			}
			g.Admitted = append(g.Admitted, need.Count)
		}
		if !s.refuse.Load() && st.Usage.Held == 0 {
			g.Granted = 1 << 31
		}
		st.Outcome, st.Grant = slice.Ran, g
	}
}

func (s *generousStore) Heartbeat(_ context.Context, member string, _ time.Duration, fleets []*slice.Fleet) {
	for _, f := range fleets {
		f.Members = []string{member}
	}
}
func (s *generousStore) Leave(context.Context, string, []string) error { return nil }
func (s *generousStore) Mark(context.Context, []slice.Mark) error      { return nil }
func (s *generousStore) Marks(context.Context, int64, int) ([]slice.Mark, error) {
	return nil, nil
}
func (*generousStore) Claim(context.Context, []slice.Mark) ([]bool, error) { return nil, nil }

// benchKeys are as long as API keys are, in random order: requests do not come
// in the order in which keys were made.
func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "key-" + strconv.FormatInt(int64(i)+1<<40, 16)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

// counter stands for what a limiter must keep per key: one hot word in a record
// of the size of an account, so that both sides miss the caches alike.
type counter struct {
	atomic.Uint64
	_ [88]byte
}

// rig is the contestants side by side in one heap: built key by key, so that
// their records lie among each other and miss the caches alike.
type rig struct {
	keys   []string // as callers have them: not the stored strings
	node   *Node
	l      *Limiter
	tenant *Limiter // a second limit for AllowAll, of one key
	bare   *xsync.MapOf[string, *counter]
	rate   *xsync.MapOf[string, *rate.Limiter]
	lone   *rate.Limiter
	word   counter
}

// plenty is a limit that no benchmark uses up.
var plenty = Per(1<<40, time.Hour)

// newNodeOn makes a node on a store, with room for the keys of any benchmark.
func newNodeOn(tb testing.TB, store syncer.Store) *Node {
	tb.Helper()
	opts, err := (&Options{Logger: quiet(), MaxKeys: 1 << 22, StoreTimeout: time.Second}).withDefaults()
	if err != nil {
		tb.Fatal(err)
	}
	node := newNode(store, opts)
	tb.Cleanup(func() { _ = node.Close() })
	return node
}

func newLimiter(tb testing.TB, n *Node, name string, acc Accuracy) *Limiter {
	tb.Helper()
	l, err := n.Limiter(name, plenty, &LimiterOptions{Accuracy: acc})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// newRig makes a rig of n keys, a power of two, all with a slice or all refused.
func newRig(tb testing.TB, n int, refuse bool) *rig {
	tb.Helper()
	store := &generousStore{}
	store.refuse.Store(refuse)
	node := newNodeOn(tb, store)
	r := &rig{
		keys: benchKeys(n), node: node, l: newLimiter(tb, node, "bench", Strict), tenant: newLimiter(tb, node, "tenant", Strict),
		bare: xsync.NewMapOf[string, *counter](), rate: xsync.NewMapOf[string, *rate.Limiter](),
		lone: rate.NewLimiter(rate.Inf/2, math.MaxInt32),
	}
	r.word.Store(math.MaxUint64)
	withSlice(tb, r.tenant, "tenant")
	for _, key := range slices.Sorted(slices.Values(r.keys)) {
		c := &counter{}
		c.Store(math.MaxUint64)
		r.bare.Store(strings.Clone(key), c)
		r.rate.Store(strings.Clone(key), rate.NewLimiter(rate.Inf/2, math.MaxInt32))
		withSlice(tb, r.l, key)
	}
	return r
}

// withSlice gets a key a slice: the second request comes within a horizon of the
// first, so a grant rides on it.
func withSlice(tb testing.TB, l *Limiter, key string) {
	tb.Helper()
	for range 2 {
		if _, err := l.Allow(context.Background(), key); err != nil {
			tb.Fatal(err)
		}
	}
}

// newFloorRig makes a rig whose keys are all served by the floor, which is earned
// from one membership TTL on.
func newFloorRig(tb testing.TB, n int) *rig {
	tb.Helper()
	r := &rig{keys: benchKeys(n), node: newNodeOn(tb, &generousStore{})}
	r.l = newLimiter(tb, r.node, "bench", Balanced)
	time.Sleep(6 * time.Second)
	for _, key := range r.keys {
		mustPath(tb, r.l, key, PathFloor)
	}
	return r
}

// mustPath fails unless a request is decided on a path.
func mustPath(tb testing.TB, l *Limiter, key string, want Path) {
	tb.Helper()
	r, err := l.Allow(context.Background(), key)
	if err != nil || r.Path != want {
		tb.Fatalf("Allow: %+v, %v; want path %v", r, err, want)
	}
}

const manyKeys = 1 << 16

// benches are what is compared, on a rig of so many keys.
var benches = map[string]func(r *rig, i int){
	"allow":  func(r *rig, i int) { admitted(r.l.Allow(context.Background(), r.key(i))) },
	"allowN": func(r *rig, i int) { admitted(r.l.AllowN(context.Background(), r.key(i), 3)) },
	"allowAll": func(r *rig, i int) {
		admitted(r.node.AllowAll(context.Background(), Check{Limiter: r.l, Key: r.key(i)}, Check{Limiter: r.tenant, Key: "tenant"}))
	},
	// What Allow cannot do without: a lookup in an xsync map, and one
	// compare-and-swap on the value.
	"bare": func(r *rig, i int) {
		v, _ := r.bare.Load(r.key(i))
		v.decrement()
	},
	"cas": func(r *rig, _ int) { r.word.decrement() },
	// golang.org/x/time/rate behind the same map, and alone: a limit per server.
	"rate": func(r *rig, i int) {
		v, _ := r.rate.Load(r.key(i))
		v.Allow()
	},
	"rate-alone": func(r *rig, _ int) { r.lone.Allow() },
	// A denial from memory, on a rig that refuses.
	"memo": func(r *rig, i int) {
		if res, _ := r.l.Allow(context.Background(), r.key(i)); res.Allowed {
			panic("allowed")
		}
	},
	"clock": func(*rig, int) { _ = time.Since(started) },
}

var started = time.Now()

func (r *rig) key(i int) string { return r.keys[i&(len(r.keys)-1)] }

func (c *counter) decrement() {
	for {
		old := c.Load()
		if c.CompareAndSwap(old, old-1) {
			return
		}
	}
}

func admitted(r Result, err error) {
	if err != nil || !r.Allowed {
		panic(fmt.Sprintf("%+v, %v", r, err))
	}
}

func (r *rig) bench(name string, parallel bool) func(*testing.B) {
	f := benches[name]
	return func(b *testing.B) { run(b, parallel, func(i int) { f(r, i) }) }
}

func run(b *testing.B, parallel bool, f func(i int)) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	if !parallel {
		for i := 0; b.Loop(); i++ {
			f(i)
		}
		return
	}
	var worker atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for i := int(worker.Add(1)) << 12; pb.Next(); i++ {
			f(i)
		}
	})
}

// both runs a bench in one goroutine, and in one per core.
func (r *rig) both(b *testing.B, name string) {
	b.Run(name, r.bench(name, false))
	b.Run(name+"/parallel", r.bench(name, true))
}

// Allow on a slice, beside the bare lookup and x/time/rate. With one key the
// parallel runs are one hot key on all cores, and "cas" is its floor.
func BenchmarkSlice(b *testing.B) {
	for _, keys := range []int{1, manyKeys, 1 << 20} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			r := newRig(b, keys, false)
			mustPath(b, r.l, r.keys[0], PathSlice)
			for _, name := range []string{"allow", "bare", "rate"} {
				r.both(b, name)
			}
			if keys > 1 {
				return
			}
			for _, name := range []string{"allowN", "allowAll", "cas", "rate-alone", "clock"} {
				r.both(b, name)
			}
		})
	}
}

// A denial from memory, beside the clock reading that it cannot do without.
func BenchmarkDenial(b *testing.B) {
	r := newRig(b, 1, true)
	mustPath(b, r.l, r.keys[0], PathMemo)
	r.both(b, "memo")
	b.Run("clock", r.bench("clock", false))
}

// An admission from the floor, beside the clock reading that it cannot do without.
func BenchmarkFloor(b *testing.B) {
	for _, keys := range []int{1, manyKeys} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			r := newFloorRig(b, keys)
			r.both(b, "allow")
			b.Run("clock", r.bench("clock", false))
		})
	}
}

// An admission by a real Redis, beside a bare script call of the same client.
func BenchmarkExact(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	node, err := New(rdb, &Options{Logger: quiet(), StoreTimeout: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = node.Close() })
	l := newLimiter(b, node, "bench", Exact)
	keys := benchKeys(1 << 10)
	mustPath(b, l, keys[0], PathExact)
	script := redis.NewScript("return redis.call('INCR', KEYS[1])")
	if err := script.Load(context.Background(), rdb).Err(); err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]func(i int){
		"allow": func(i int) { admitted(l.Allow(context.Background(), keys[i%len(keys)])) },
		"bare": func(i int) {
			if err := script.EvalSha(context.Background(), rdb, keys[i%len(keys):][:1]).Err(); err != nil {
				panic(err)
			}
		},
	} {
		b.Run(name, func(b *testing.B) { run(b, false, f) })
		b.Run(name+"/parallel", func(b *testing.B) { run(b, true, f) })
	}
}

// Stats and Denied look at every key: so many that are cold, and so many in touch with
// Redis.
func BenchmarkWatching(b *testing.B) {
	for _, keys := range []struct{ cold, touch int }{{0, 1_000}, {0, 50_000}, {1_000_000, 50_000}} {
		node := newNodeOn(b, &generousStore{})
		l := newLimiter(b, node, "bench", Strict)
		names := benchKeys(keys.cold + keys.touch)
		for i, key := range names {
			if i < keys.touch {
				withSlice(b, l, key)
			} else {
				l.core.Account(key, key)
			}
		}
		for name, look := range map[string]func(){"stats": func() { node.Stats() }, "denied": func() { l.Denied(20) }} {
			b.Run(fmt.Sprintf("cold=%d/touch=%d/%s", keys.cold, keys.touch, name), func(b *testing.B) {
				for b.Loop() {
					look()
				}
			})
		}
		if n := node.Stats().Total.Keys; n < len(names)*8/10 {
			b.Errorf("%d keys of %d are remembered", n, len(names))
		}
	}
}
