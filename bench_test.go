package hybrid

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"golang.org/x/time/rate"

	"github.com/hybridlimit/hybrid/slice"
)

// The benchmarks measure the hot path beside its own floor: what a map lookup
// and one atomic operation cost anyway. Absolute times differ between machines;
// TestSpeedRatios prints the ratios of one run.

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
	_ [120]byte
}

// rig is the contestants side by side in one heap: built key by key, so that
// their records lie among each other and miss the caches alike.
type rig struct {
	keys []string // as callers have them: not the stored strings
	l    *Limiter
	bare *xsync.MapOf[string, *counter]
	rate *xsync.MapOf[string, *rate.Limiter]
}

func newRig(tb testing.TB, n int, refuse bool) *rig {
	tb.Helper()
	opts, err := (&Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), MaxKeys: 1 << 22, StoreTimeout: time.Second}).withDefaults()
	if err != nil {
		tb.Fatal(err)
	}
	store := &generousStore{}
	store.refuse.Store(refuse)
	node := newNode(store, opts)
	tb.Cleanup(func() { _ = node.Close() })
	r := &rig{keys: benchKeys(n), bare: xsync.NewMapOf[string, *counter](), rate: xsync.NewMapOf[string, *rate.Limiter]()}
	if r.l, err = node.Limiter("bench", Per(1<<40, time.Hour), &LimiterOptions{Accuracy: Strict}); err != nil {
		tb.Fatal(err)
	}
	for _, key := range slices.Sorted(slices.Values(r.keys)) {
		c := &counter{}
		c.Store(math.MaxUint64)
		r.bare.Store(strings.Clone(key), c)
		r.rate.Store(strings.Clone(key), rate.NewLimiter(rate.Inf/2, math.MaxInt32))
		// The second request comes within a horizon of the first, so a grant rides on it.
		for range 2 {
			if _, err := r.l.Allow(context.Background(), key); err != nil {
				tb.Fatal(err)
			}
		}
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

// benches are what is compared, on a rig of so many keys (a power of two).
var benches = map[string]func(r *rig, i int){
	// Allow on a slice.
	"allow": func(r *rig, i int) {
		if res, _ := r.l.Allow(context.Background(), r.key(i)); !res.Allowed {
			panic("denied")
		}
	},
	// What Allow cannot do without: a lookup in an xsync map, and one
	// compare-and-swap on the value.
	"bare": func(r *rig, i int) {
		v, _ := r.bare.Load(r.key(i))
		for {
			old := v.Load()
			if v.CompareAndSwap(old, old-1) {
				return
			}
		}
	},
	// golang.org/x/time/rate behind the same map: a limit per server.
	"rate": func(r *rig, i int) {
		v, _ := r.rate.Load(r.key(i))
		v.Allow()
	},
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

func BenchmarkAllow(b *testing.B) {
	for _, keys := range []int{1, manyKeys} {
		r := newRig(b, keys, false)
		mustPath(b, r.l, r.keys[0], PathSlice)
		for _, name := range []string{"allow", "bare", "rate"} {
			b.Run(fmt.Sprintf("%s/keys=%d", name, keys), r.bench(name, false))
			b.Run(fmt.Sprintf("%s/keys=%d/parallel", name, keys), r.bench(name, true))
		}
	}
	r := newRig(b, 1, true)
	mustPath(b, r.l, r.keys[0], PathMemo)
	b.Run("memo", r.bench("memo", false))
	b.Run("clock", r.bench("clock", false))
}

var ratios = flag.Bool("ratios", false, "measure the speed ratios of TestSpeedRatios")

// slack is what a ratio may exceed its target by before the test fails: a busy
// machine must not fail it, a hot path twice as slow must.
const slack = 2.0

// TestSpeedRatios prints the first four rows of the speed table as ratios of
// medians of interleaved runs: go test -run TestSpeedRatios -ratios -v .
func TestSpeedRatios(t *testing.T) {
	if !*ratios {
		t.Skip("measures for a minute: give -ratios")
	}
	many, one, refusing := newRig(t, manyKeys, false), newRig(t, 1, false), newRig(t, 1, true)
	mustPath(t, many.l, many.keys[0], PathSlice)
	mustPath(t, one.l, one.keys[0], PathSlice)
	mustPath(t, refusing.l, refusing.keys[0], PathMemo)
	ns := measure(t, map[string]func(*testing.B){
		"allow":          many.bench("allow", false),
		"allow parallel": many.bench("allow", true),
		"bare":           many.bench("bare", false),
		"rate":           many.bench("rate", false),
		"rate parallel":  many.bench("rate", true),
		"hot":            one.bench("allow", true),
		"hot bare":       one.bench("bare", true),
		"one":            one.bench("allow", false),
		"memo":           refusing.bench("memo", false),
		"clock":          one.bench("clock", false),
	})
	for _, row := range []struct {
		what         string
		value, limit float64
	}{
		{"Allow on a slice ÷ (xsync Load + CAS), 64Ki keys", ns["allow"] / ns["bare"], 1.5},
		{"Allow ÷ x/time/rate behind the same map, serial", ns["allow"] / ns["rate"], 1 / 2.5},
		{"Allow ÷ x/time/rate behind the same map, parallel", ns["allow parallel"] / ns["rate parallel"], 1 / 2.5},
		{"one hot key, all cores ÷ (Load + contended CAS)", ns["hot"] / ns["hot bare"], 1.5},
		{"denial from memory ÷ (admission + clock)", ns["memo"] / (ns["one"] + ns["clock"]), 2},
	} {
		t.Logf("%-52s %.2f  (target ≤ %.2f)", row.what, row.value, row.limit)
		if row.value > row.limit*slack {
			t.Errorf("%s: %.2f, more than %.1f times the target %.2f", row.what, row.value, slack, row.limit)
		}
	}
}

// measure returns the median ns per operation of interleaved runs.
func measure(t *testing.T, benches map[string]func(*testing.B)) map[string]float64 {
	const rounds = 5
	all := make(map[string][]float64)
	for range rounds {
		for name, bench := range benches {
			r := testing.Benchmark(bench)
			all[name] = append(all[name], float64(r.T.Nanoseconds())/float64(r.N))
		}
	}
	medians := make(map[string]float64)
	for name, list := range all {
		slices.Sort(list)
		medians[name] = list[rounds/2]
		t.Logf("%-16s %7.1f ns/op", name, medians[name])
	}
	return medians
}

func TestHotPathAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, 1, false)
	key := r.keys[0]
	mustPath(t, r.l, key, PathSlice)
	if n := testing.AllocsPerRun(1000, func() { _, _ = r.l.Allow(ctx, key) }); n != 0 {
		t.Errorf("Allow on a slice: %v allocations, want 0", n)
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = r.l.AllowN(ctx, key, 3) }); n != 0 {
		t.Errorf("AllowN on a slice: %v allocations, want 0", n)
	}
	r = newRig(t, 1, true)
	mustPath(t, r.l, key, PathMemo)
	if n := testing.AllocsPerRun(1000, func() { _, _ = r.l.Allow(ctx, key) }); n != 0 {
		t.Errorf("denial from memory: %v allocations, want 0", n)
	}
}
