package hybrid

import (
	"context"
	"flag"
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

// benchLimiter returns a limiter that holds a slice of every key.
func benchLimiter(tb testing.TB, keys []string, refuse bool) *Limiter {
	tb.Helper()
	opts, err := (&Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), MaxKeys: 1 << 22, StoreTimeout: time.Second}).withDefaults()
	if err != nil {
		tb.Fatal(err)
	}
	store := &generousStore{}
	store.refuse.Store(refuse)
	n := newNode(store, opts)
	tb.Cleanup(func() { _ = n.Close() })
	l, err := n.Limiter("bench", Per(1<<40, time.Hour), &LimiterOptions{Accuracy: Strict})
	if err != nil {
		tb.Fatal(err)
	}
	for _, key := range slices.Sorted(slices.Values(keys)) {
		// The second request comes within a horizon of the first, so a grant rides on it.
		for range 2 {
			if _, err := l.Allow(context.Background(), key); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return l
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

func benchAllow(b *testing.B, keys int, parallel bool) {
	names := benchKeys(keys)
	l := benchLimiter(b, names, false)
	mustPath(b, l, names[0], PathSlice)
	ctx := context.Background()
	run(b, parallel, func(i int) {
		if r, _ := l.Allow(ctx, names[i&(keys-1)]); !r.Allowed {
			b.Error("denied")
		}
	})
}

// benchFloor is what Allow cannot do without: the same lookup in an xsync map,
// and one compare-and-swap on the value.
func benchFloor(b *testing.B, keys int, parallel bool) {
	names := benchKeys(keys)
	m := xsync.NewMapOf[string, *counter]()
	for _, k := range slices.Sorted(slices.Values(names)) {
		v := &counter{}
		v.Store(math.MaxUint64)
		m.Store(strings.Clone(k), v) // callers' keys are not the stored ones
	}
	run(b, parallel, func(i int) {
		v, _ := m.Load(names[i&(keys-1)])
		for {
			old := v.Load()
			if v.CompareAndSwap(old, old-1) {
				return
			}
		}
	})
}

// benchRate is golang.org/x/time/rate behind the same map: a limit per server.
func benchRate(b *testing.B, keys int, parallel bool) {
	names := benchKeys(keys)
	m := xsync.NewMapOf[string, *rate.Limiter]()
	for _, k := range slices.Sorted(slices.Values(names)) {
		m.Store(strings.Clone(k), rate.NewLimiter(rate.Inf/2, math.MaxInt32))
	}
	run(b, parallel, func(i int) {
		v, _ := m.Load(names[i&(keys-1)])
		v.Allow()
	})
}

func benchMemo(b *testing.B, _ int, parallel bool) {
	l := benchLimiter(b, []string{"k"}, true)
	mustPath(b, l, "k", PathMemo)
	ctx := context.Background()
	run(b, parallel, func(i int) {
		if r, _ := l.Allow(ctx, "k"); r.Allowed {
			b.Error("allowed")
		}
	})
}

func benchClock(b *testing.B, _ int, parallel bool) {
	start := time.Now()
	run(b, parallel, func(int) { _ = time.Since(start) })
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
	for _, row := range []struct {
		name  string
		bench func(*testing.B, int, bool)
		keys  int
	}{
		{"slice/64Ki", benchAllow, manyKeys},
		{"slice/1", benchAllow, 1},
		{"floor-load-cas/64Ki", benchFloor, manyKeys},
		{"floor-load-cas/1", benchFloor, 1},
		{"xtimerate/64Ki", benchRate, manyKeys},
		{"xtimerate/1", benchRate, 1},
		{"memo/1", benchMemo, 1},
		{"clock/1", benchClock, 1},
	} {
		b.Run(row.name, func(b *testing.B) { row.bench(b, row.keys, false) })
		b.Run(row.name+"/parallel", func(b *testing.B) { row.bench(b, row.keys, true) })
	}
}

var ratios = flag.Bool("ratios", false, "measure the speed ratios of TestSpeedRatios")

// slack is what a ratio may exceed its target by before the test fails: a busy
// machine must not fail it, a hot path twice as slow must.
const slack = 1.5

// TestSpeedRatios prints the first four rows of the speed table as ratios of
// medians of interleaved runs: go test -run TestSpeedRatios -ratios -v .
func TestSpeedRatios(t *testing.T) {
	if !*ratios {
		t.Skip("measures for a minute: give -ratios")
	}
	ns := measure(t, map[string]func(*testing.B){
		"allow":          func(b *testing.B) { benchAllow(b, manyKeys, false) },
		"allow parallel": func(b *testing.B) { benchAllow(b, manyKeys, true) },
		"floor":          func(b *testing.B) { benchFloor(b, manyKeys, false) },
		"rate":           func(b *testing.B) { benchRate(b, manyKeys, false) },
		"rate parallel":  func(b *testing.B) { benchRate(b, manyKeys, true) },
		"hot":            func(b *testing.B) { benchAllow(b, 1, true) },
		"hot floor":      func(b *testing.B) { benchFloor(b, 1, true) },
		"one":            func(b *testing.B) { benchAllow(b, 1, false) },
		"memo":           func(b *testing.B) { benchMemo(b, 1, false) },
		"clock":          func(b *testing.B) { benchClock(b, 1, false) },
	})
	for _, row := range []struct {
		what         string
		value, limit float64
	}{
		{"Allow on a slice ÷ (xsync Load + CAS), 64Ki keys", ns["allow"] / ns["floor"], 1.5},
		{"Allow ÷ x/time/rate behind the same map, serial", ns["allow"] / ns["rate"], 1 / 2.5},
		{"Allow ÷ x/time/rate behind the same map, parallel", ns["allow parallel"] / ns["rate parallel"], 1 / 2.5},
		{"one hot key, all cores ÷ (Load + contended CAS)", ns["hot"] / ns["hot floor"], 1.5},
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
	l := benchLimiter(t, []string{"k"}, false)
	mustPath(t, l, "k", PathSlice)
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.Allow(ctx, "k") }); n != 0 {
		t.Errorf("Allow on a slice: %v allocations, want 0", n)
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.AllowN(ctx, "k", 3) }); n != 0 {
		t.Errorf("AllowN on a slice: %v allocations, want 0", n)
	}
	l = benchLimiter(t, []string{"k"}, true)
	mustPath(t, l, "k", PathMemo)
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.Allow(ctx, "k") }); n != 0 {
		t.Errorf("denial from memory: %v allocations, want 0", n)
	}
}
