package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

// A Prometheus server scrapes the fleet. Every query of the dashboard shows
// something, and when all nodes lose Redis the alerts tell.
func TestPrometheusShowsTheFleet(t *testing.T) {
	c := config{redis: "redis://" + redistest.Start(t).Addr, nodes: 2, rate: 400}
	f, err := start(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f.serve(ctx, c, io.Discard) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		f.stop()
	})
	p := startPrometheus(t, f)
	if firing := p.firing(); len(firing) != 0 {
		t.Errorf("all is well, and %v fire", firing)
	}

	f.cut(true)
	redistest.Eventually(t, "the alert of an outage fires", func() bool {
		return slices.Contains(p.firing(), "HybridStoreDownEverywhere")
	})
	redistest.Eventually(t, "the causes are seen", func() bool { return len(p.query(`hybrid_operation_failures_total > 0`)) > 0 })
	queries := dashboardQueries(t)
	for title, all := range queries {
		for _, q := range all {
			redistest.Eventually(t, fmt.Sprintf("%s shows something: %s", title, q), func() bool { return len(p.query(q)) > 0 })
		}
	}
	if len(queries) < 20 {
		t.Errorf("only %d panels", len(queries))
	}
	f.cut(false)
	redistest.Eventually(t, "the alert is over", func() bool { return len(p.firing()) == 0 })
}

// dashboardQueries are the queries of the dashboard by the titles of their panels,
// with variables replaced as Grafana does it.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$job", ".*", "$instance", ".*", "$limiter", ".*", "$__rate_interval", "5s")
	queries := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries[p.Title] = append(queries[p.Title], fill.Replace(target.Expr))
		}
	}
	return queries
}

// server is a Prometheus server.
type server struct {
	t   *testing.T
	url string
}

// startPrometheus runs a server that scrapes the fleet twice a second, until the
// test ends. Without the binary, the test is skipped; if HYBRID_REQUIRE_PROMTOOL=1,
// it fails: the two come together.
func startPrometheus(t *testing.T, f fleet) *server {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		if os.Getenv("HYBRID_REQUIRE_PROMTOOL") == "1" {
			t.Fatal("prometheus is not on PATH, and HYBRID_REQUIRE_PROMTOOL=1")
		}
		t.Skip("prometheus is not on PATH: install Prometheus (apt install prometheus, brew install prometheus) to run this test")
	}
	dir, addr := t.TempDir(), freeAddr(t)
	var out strings.Builder
	cmd := exec.Command("prometheus", "--config.file", writeConfig(t, dir, f), "--storage.tsdb.path", dir,
		"--web.listen-address", addr, "--log.level", "warn")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", out.String())
		}
	})
	s := &server{t: t, url: "http://" + addr}
	redistest.Eventually(t, "Prometheus has scraped all nodes twice", func() bool {
		return len(s.query(`rate(hybrid_slice_tokens_total{limiter="api"}[5s]) > 0`)) == len(f)
	})
	return s
}

func writeConfig(t *testing.T, dir string, f fleet) string {
	t.Helper()
	var targets []string
	for _, m := range f {
		targets = append(targets, fmt.Sprintf("%q", m.addr))
	}
	alerts, err := filepath.Abs("../alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - job_name: demo
    static_configs: [{targets: [%s]}]
`, alerts, strings.Join(targets, ", "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// query returns the labels of the series that a query gives now; none while the
// server does not answer yet.
func (s *server) query(expr string) (series []map[string]string) {
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if !s.get("/api/v1/query?query="+url.QueryEscape(expr), &answer) {
		return nil
	}
	if answer.Status != "success" {
		s.t.Fatalf("%s: %s", expr, answer.Error)
	}
	for _, r := range answer.Data.Result {
		series = append(series, r.Metric)
	}
	return series
}

// firing are the names of the alerts that fire.
func (s *server) firing() (names []string) {
	for _, labels := range s.query(`ALERTS{alertstate="firing"}`) {
		names = append(names, labels["alertname"])
	}
	return names
}

func (s *server) get(path string, into any) bool {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(s.url + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode != http.StatusServiceUnavailable && json.NewDecoder(resp.Body).Decode(into) == nil
}
