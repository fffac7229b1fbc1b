package hybridprom

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/hybridlimit/hybrid"
)

// The client's own log of broken connections is what some tests ask for.
func init() { logging.Disable() }

// nowhere is an address at which nobody listens.
const nowhere = "127.0.0.1:1"

// newNode makes a node that waits for Redis for a second, so that what is
// decided does not depend on how busy the machine is.
func newNode(t testing.TB, addr string, change ...func(*hybrid.Options)) *hybrid.Node {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, ContextTimeoutEnabled: true})
	opts := &hybrid.Options{Logger: slog.New(slog.DiscardHandler), StoreTimeout: time.Second}
	for _, c := range change {
		c(opts)
	}
	node, err := hybrid.New(rdb, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = node.Close() // some tests have broken its Redis
		_ = rdb.Close()
	})
	return node
}

func newLimiter(t testing.TB, node *hybrid.Node, name string, l hybrid.Limit, opts *hybrid.LimiterOptions) *hybrid.Limiter {
	t.Helper()
	lim, err := node.Limiter(name, l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

func newCollector(t testing.TB, node *hybrid.Node, opts *Options) prometheus.Collector {
	t.Helper()
	c, err := New(node, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// allow asks once. A test's own mistakes end it.
func allow(t testing.TB, l *hybrid.Limiter, key string, n int64) hybrid.Result {
	t.Helper()
	r, err := l.AllowN(context.Background(), key, n)
	if err != nil {
		t.Error(err)
	}
	return r
}

// target is a server with /metrics, as a service has it.
type target struct {
	t   testing.TB
	url string
}

// serve registers collectors and serves them.
func serve(t testing.TB, collectors ...prometheus.Collector) *target {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &target{t: t, url: server.URL + "/metrics"}
}

// fresh serves the metrics of a node, each scrape with a look of its own.
func fresh(t testing.TB, node *hybrid.Node) *target {
	t.Helper()
	return serve(t, newCollector(t, node, &Options{MinInterval: shortest}))
}

// text is what a scrape says.
func (tg *target) text() string {
	tg.t.Helper()
	time.Sleep(2 * shortest) // so that the last look has aged
	resp, err := http.Get(tg.url)
	if err != nil {
		tg.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		tg.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		tg.t.Fatalf("status %d: %s", resp.StatusCode, body)
	}
	return string(body)
}

// scrape is what a scrape says, as the parser of Prometheus reads it.
func (tg *target) scrape() samples {
	tg.t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(tg.text()))
	if err != nil {
		tg.t.Fatal(err)
	}
	all := samples{}
	for name, f := range families {
		if strings.HasPrefix(name, "hybrid") {
			all.add(f)
		}
	}
	return all
}

// samples are the values of a scrape by series, as name{label="value",…} with the
// labels by name; a histogram has those of its parts.
type samples map[string]float64

func (s samples) add(f *dto.MetricFamily) {
	decoded, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, f)
	if err != nil {
		panic(err) // a type that this package has none of
	}
	for _, one := range decoded {
		s[one.Metric.String()] = float64(one.Value)
	}
}

// want compares one series.
func (s samples) want(t testing.TB, series string, want float64) {
	t.Helper()
	if got, there := s[series]; !there || got != want {
		t.Errorf("%s is %v (there: %t), want %v", series, got, there, want)
	}
}

// sum adds the series of a name up that have all of the labels, given as name="value".
func (s samples) sum(name string, labels ...string) (sum float64) {
next:
	for series, v := range s {
		if series != name && !strings.HasPrefix(series, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(series, l) {
				continue next
			}
		}
		sum += v
	}
	return sum
}
