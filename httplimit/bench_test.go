package httplimit

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// rig is a limiter whose keys are on slices that last, so that what is measured
// is the middleware. The bare Allow is measured beside it, in the same run.
type rig struct {
	node    *hybrid.Node
	limiter *hybrid.Limiter
	request *http.Request
	writer  *writer
}

// writer is a response that can be used again, as a server's own is not part of
// what a middleware costs.
type writer struct{ header http.Header }

func (w *writer) Header() http.Header         { return w.header }
func (w *writer) Write(p []byte) (int, error) { return len(p), nil }
func (w *writer) WriteHeader(int)             {}

const apiKey = "key-1000000000a"

func newRig(tb testing.TB, rdb *redis.Client) *rig {
	tb.Helper()
	node, err := hybrid.New(rdb, &hybrid.Options{Logger: silent, StoreTimeout: time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = node.Close() })
	r := &rig{node: node, request: httptest.NewRequest(http.MethodGet, "/items/1", nil), writer: &writer{header: http.Header{}}}
	r.request.Header.Set("X-API-Key", apiKey)
	if r.limiter, err = node.Limiter("bench", hybrid.Per(1<<45, time.Hour), &hybrid.LimiterOptions{Accuracy: hybrid.Strict}); err != nil {
		tb.Fatal(err)
	}
	for _, key := range []string{apiKey, "203.0.113.9", "2001:db8:1:2::/64", "1:x203.0.113.9"} {
		r.warm(tb, key)
	}
	return r
}

// warm asks until a slice is large enough for what follows.
func (r *rig) warm(tb testing.TB, key string) {
	tb.Helper()
	for range 40 {
		res, err := r.limiter.AllowN(ctx, key, 1<<24)
		if err != nil || !res.Allowed {
			tb.Fatalf("%+v, %v", res, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if res, err := r.limiter.Allow(ctx, key); err != nil || res.Path != hybrid.PathSlice {
		tb.Fatalf("%+v, %v; want a slice", res, err)
	}
}

// serve makes a function that sends the request once, from an address, to a
// handler that does nothing.
func (r *rig) serve(tb testing.TB, remote string, opts *Options) func() {
	tb.Helper()
	mw, err := New(r.limiter, opts)
	if err != nil {
		tb.Fatal(err)
	}
	h := mw(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return func() {
		r.request.RemoteAddr = remote
		clear(r.writer.header)
		h.ServeHTTP(r.writer, r.request)
	}
}

const (
	ipv4 = "203.0.113.9:1234"
	ipv6 = "[2001:db8:1:2:3:4:5:6]:1234"
)

// decided is what Options.Decided of a style was told.
var decided bool

// styles are what a request that passes from a slice allocates: the text of its
// header values and the slice of them, and nothing without headers. A key that must
// be written down is one more.
var styles = []struct {
	name   string
	remote string
	opts   Options
	allocs float64
}{
	{"none", ipv4, Options{Headers: NoHeaders}, 0},
	{"none/header-key", ipv4, Options{Headers: NoHeaders, Key: Header("X-API-Key")}, 0},
	{"x-ratelimit", ipv4, Options{}, 2},
	{"epoch", ipv4, Options{Headers: XRateLimitEpoch}, 2},
	{"ietf", ipv4, Options{Headers: IETF}, 2},
	{"none/behind-proxy", ipv4, Options{Headers: NoHeaders, Key: ClientIP([]string{"10.0.0.0/8"}, nil)}, 0},
	{"none/decided", ipv4, Options{Headers: NoHeaders, Decided: func(_ *http.Request, d Decision) { decided = d.Result.Allowed }}, 0},
	{"none/ipv6", ipv6, Options{Headers: NoHeaders}, 1},
	{"none/join", ipv4, Options{Headers: NoHeaders, Key: Join(Fixed("x"), RemoteIP(nil))}, 1},
}

func TestAllocations(t *testing.T) {
	r := newRig(t, redistest.MiniClient(t))
	for _, s := range styles {
		call := r.serve(t, s.remote, &s.opts)
		if n := testing.AllocsPerRun(1000, call); n != s.allocs {
			t.Errorf("%s: %v allocations, want %v", s.name, n, s.allocs)
		}
		if got := r.writer.header.Get("X-RateLimit-Limit"); s.name == "x-ratelimit" && got != "35184372088832" {
			t.Errorf("%s: limit %q", s.name, got)
		}
	}
}

// However many limits there are, of as many customers or one after the other, a
// request shows its own, and allocates what it does of a single one.
func TestAllocationsOfManyLimits(t *testing.T) {
	limitOf := func(i int) hybrid.Limit { return hybrid.Per(1<<45+int64(i), time.Hour) }
	opts := &Options{Headers: IETF, Key: Header("X-API-Key")}
	r := newRig(t, redistest.MiniClient(t))
	check := func(what string, call func(), i int) {
		t.Helper()
		if n := testing.AllocsPerRun(1000, call); n != 2 {
			t.Errorf("%s, limit %d: %v allocations, want 2", what, i, n)
		}
		want := fmt.Sprintf(`"%s";q=%d;w=3600`, r.limiter.Name(), 1<<45+int64(i))
		if got := r.writer.header["Ratelimit-Policy"]; len(got) != 1 || got[0] != want {
			t.Errorf("%s, limit %d is shown as %q, want %q", what, i, got, want)
		}
	}
	const limits = 300

	call := r.serve(t, ipv4, opts)
	for i := range limits {
		if err := r.limiter.SetLimit(limitOf(i)); err != nil {
			t.Fatal(err)
		}
		call()
	}
	r.warm(t, apiKey)
	check("SetLimit", call, limits-1)

	var err error
	if r.limiter, err = r.node.Limiter("customers", limitOf(0), &hybrid.LimiterOptions{Accuracy: hybrid.Strict,
		LimitFor: func(key string) (hybrid.Limit, bool) {
			i, err := strconv.Atoi(key)
			return limitOf(i), err == nil
		}}); err != nil {
		t.Fatal(err)
	}
	call = r.serve(t, ipv4, opts)
	for i := range limits {
		r.request.Header["X-Api-Key"] = []string{strconv.Itoa(i)}
		call()
	}
	for _, i := range []int{0, limits - 1} {
		key := strconv.Itoa(i)
		r.request.Header["X-Api-Key"] = []string{key}
		r.warm(t, key)
		check("LimitFor", call, i)
	}
}

// Several limits allocate what AllowAll allocates for them, and the values of the
// headers.
func TestAllocationsOfSeveralLimits(t *testing.T) {
	r := newRig(t, redistest.MiniClient(t))
	first := hybrid.Check{Limiter: r.limiter, Key: apiKey}
	second := hybrid.Check{Limiter: r.limiter, Key: "203.0.113.9"}
	bare := testing.AllocsPerRun(1000, func() { _, _ = r.node.AllowAll(ctx, first, second) })
	for style, values := range map[Headers]float64{NoHeaders: 0, XRateLimit: 2, IETF: 2} {
		opts := &Options{Headers: style, Key: Header("X-API-Key"), More: []Check{{Limiter: r.limiter, Key: RemoteIP(nil)}}}
		if n := testing.AllocsPerRun(1000, r.serve(t, ipv4, opts)); n != bare+values {
			t.Errorf("%v: %v allocations, want the %v of AllowAll and %v", style, n, bare, values)
		}
	}
}

// bareAllow is the control: what the limiter costs without HTTP.
func (r *rig) bareAllow() {
	if res, _ := r.limiter.Allow(ctx, apiKey); !res.Allowed {
		panic("denied")
	}
}

func bench(f func()) func(*testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f()
		}
	}
}

func BenchmarkMiddleware(b *testing.B) {
	r := newRig(b, redistest.Start(b).Client(b))
	b.Run("bare Allow", bench(r.bareAllow))
	for _, s := range styles {
		b.Run(s.name, bench(r.serve(b, s.remote, &s.opts)))
	}
}

var ratios = flag.Bool("ratios", false, "measure the times of TestAddedTime")

// TestAddedTime prints what the middleware adds to a bare Allow of the same run,
// as medians of interleaved rounds: go test ./httplimit -run TestAddedTime -ratios -v
// It is to be less than a microsecond.
func TestAddedTime(t *testing.T) {
	if !*ratios {
		t.Skip("measures for half a minute: give -ratios")
	}
	const rounds = 3
	r := newRig(t, redistest.Start(t).Client(t))
	calls := []func(){r.bareAllow}
	for _, s := range styles {
		calls = append(calls, r.serve(t, s.remote, &s.opts))
	}
	times := make([][]float64, len(calls))
	for range rounds {
		for i, call := range calls {
			res := testing.Benchmark(bench(call))
			times[i] = append(times[i], float64(res.T.Nanoseconds())/float64(res.N))
		}
	}
	median := func(i int) float64 { return slices.Sorted(slices.Values(times[i]))[rounds/2] }
	t.Logf("%-20s %5.0f ns", "bare Allow", median(0))
	for i, s := range styles {
		added := median(i+1) - median(0)
		t.Logf("%-20s %5.0f ns more", s.name, added)
		if added > 1000 {
			t.Errorf("%s adds %.0f ns, want less than 1000", s.name, added)
		}
	}
}
