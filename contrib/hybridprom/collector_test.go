package hybridprom

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// tooMuch costs more than any limit here: it is denied by the numbers alone, and
// so the same on every machine.
const tooMuch = 1 << 40

func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	node := newNode(t, nowhere)
	newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(t, node, nil))
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// All metrics are there from the first scrape, at 0: a counter that appears with
// its first event hides that event from rate. Causes are what cannot be known
// before.
func TestAllMetricsAreThereAtOnce(t *testing.T) {
	node := newNode(t, redistest.Start(t).Addr)
	newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
	s := fresh(t, node).scrape()
	for _, name := range names() {
		there := slices.ContainsFunc(slices.Collect(maps.Keys(s)), func(series string) bool {
			return series == name || strings.HasPrefix(series, name+"{") || series == name+"_count"
		})
		if there == (name == "hybrid_operation_failures_total") {
			t.Errorf("%s is there: %t", name, there)
		}
	}
}

// names are those of all metrics, under the default namespace.
func names() (all []string) {
	for _, m := range metrics {
		all = append(all, "hybrid_"+m.name)
	}
	for _, h := range histograms {
		all = append(all, "hybrid_"+h.name)
	}
	return all
}

// The documentation of the package lists what there is, with its labels, and
// counts the series of a limiter.
func TestDocListsAllMetrics(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-z_]+)(?:\{([a-z_,]+)\})? {2,}`).FindAllStringSubmatch(string(doc), -1) {
		listed[m[1]] = m[2]
	}
	for _, m := range metrics {
		labels := strings.Join(slices.DeleteFunc(slices.Clone(m.labels), func(l string) bool { return l == "limiter" }), ",")
		if got, there := listed[m.name]; !there || got != labels {
			t.Errorf("doc.go has %s{%s} (there: %t), want {%s}", m.name, got, there, labels)
		}
		delete(listed, m.name)
	}
	for _, h := range histograms {
		delete(listed, h.name)
	}
	if len(listed) != 0 {
		t.Errorf("doc.go lists %v, which there are not", listed)
	}
	if !strings.Contains(string(doc), fmt.Sprintf("A limiter has %d series", seriesOfALimiter(t))) {
		t.Errorf("doc.go does not say that a limiter has %d series", seriesOfALimiter(t))
	}
}

func seriesOfALimiter(t *testing.T) int {
	t.Helper()
	node := newNode(t, nowhere)
	metrics := fresh(t, node)
	without := len(metrics.scrape())
	newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
	return len(metrics.scrape()) - without
}

func TestScrapesShareALook(t *testing.T) {
	node := newNode(t, nowhere)
	api := newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
	rare, often := newCollector(t, node, &Options{MinInterval: time.Minute}), newCollector(t, node, &Options{MinInterval: time.Millisecond})
	old, current := serve(t, rare), serve(t, often)
	const denied = `hybrid_decisions_total{limiter="api", path="exact", result="denied"}`
	for n := range 3 {
		current.scrape().want(t, denied, float64(n))
		old.scrape().want(t, denied, 0) // as at its first look, less than a minute ago
		allow(t, api, "k", tooMuch)
	}
}

func TestClosedLimitersVanish(t *testing.T) {
	node := newNode(t, nowhere)
	metrics := fresh(t, node)
	before := metrics.scrape()
	for round := range 2 {
		api := newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
		for range round + 3 {
			allow(t, api, "k", tooMuch)
		}
		metrics.scrape().want(t, `hybrid_decisions_total{limiter="api", path="exact", result="denied"}`, float64(round+3))
		_ = api.Close() // its Redis is not there
		for series := range metrics.scrape() {
			if strings.Contains(series, `limiter="api"`) {
				t.Errorf("round %d: %s is still there", round, series)
			}
		}
	}
	if after := metrics.scrape(); len(after) < len(before) {
		t.Errorf("%d series of the node, %d before", len(after), len(before))
	}
}

func TestClosedNodeCanBeScraped(t *testing.T) {
	node := newNode(t, redistest.Start(t).Addr)
	api := newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
	allow(t, api, "k", 1)
	metrics := fresh(t, node)
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	if calls := metrics.scrape()["hybrid_store_calls_total"]; calls < 1 {
		t.Errorf("%v calls", calls)
	}
}

// Two nodes in one process: their ConstLabels tell them apart.
func TestSeveralNodes(t *testing.T) {
	eu, us := newNode(t, nowhere), newNode(t, nowhere)
	allow(t, newLimiter(t, eu, "api", hybrid.PerMinute(100), nil), "k", tooMuch)
	newLimiter(t, us, "api", hybrid.PerMinute(100), nil)
	s := serve(t,
		newCollector(t, eu, &Options{ConstLabels: prometheus.Labels{"store": "eu"}}),
		newCollector(t, us, &Options{ConstLabels: prometheus.Labels{"store": "us"}}),
	).scrape()
	s.want(t, `hybrid_decisions_total{limiter="api", path="exact", result="denied", store="eu"}`, 1)
	s.want(t, `hybrid_decisions_total{limiter="api", path="exact", result="denied", store="us"}`, 0)

	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(t, eu, nil))
	if err := registry.Register(newCollector(t, us, nil)); !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		t.Errorf("a second one without labels: %v", err)
	}
}

func TestNamespace(t *testing.T) {
	node := newNode(t, nowhere)
	if s := serve(t, newCollector(t, node, &Options{Namespace: "hybrid_edge"})).scrape(); s["hybrid_edge_max_keys"] != 1<<20 {
		t.Errorf("%v", s)
	}
}

// A limiter may have any name. One that is no UTF-8 must not spoil the scrape of
// the whole registry, and no two may look the same.
func TestAnyLimiterNameCanBeScraped(t *testing.T) {
	node := newNode(t, nowhere)
	odd := []string{"a b", "line\nfeed", `back\slash`, `quo"te`, "\xff", `"\xff"`, "ключ", "{}", strings.Repeat("n", 256)}
	for i, name := range odd {
		l := newLimiter(t, node, name, hybrid.PerMinute(100), nil)
		for range i + 1 {
			allow(t, l, "k", tooMuch)
		}
	}
	s := fresh(t, node).scrape()
	var counts []float64
	for series, v := range s {
		if strings.HasPrefix(series, "hybrid_decisions_total{") && v > 0 {
			counts = append(counts, v)
		}
	}
	slices.Sort(counts)
	if want := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(counts, want) {
		t.Errorf("denials by limiter %v, want %v", counts, want)
	}
	s.want(t, `hybrid_decisions_total{limiter="\"\\xff\"", path="exact", result="denied"}`, 5)
}

func TestSettingsOfLimiters(t *testing.T) {
	node := newNode(t, nowhere)
	newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
	newLimiter(t, node, "login", hybrid.PerMinute(5), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed, Shadow: true})
	newLimiter(t, node, "search", hybrid.PerMinute(5), &hybrid.LimiterOptions{Accuracy: hybrid.Within(0.2, 0.1), OnFailure: hybrid.FailOpen})
	s := fresh(t, node).scrape()
	s.want(t, `hybrid_limiter_info{accuracy="Balanced", limiter="api", on_failure="FailLocal", shadow="false"}`, 1)
	s.want(t, `hybrid_limiter_info{accuracy="Exact", limiter="login", on_failure="FailClosed", shadow="true"}`, 1)
	s.want(t, `hybrid_limiter_info{accuracy="Within(0.2, 0.1)", limiter="search", on_failure="FailOpen", shadow="false"}`, 1)
}
