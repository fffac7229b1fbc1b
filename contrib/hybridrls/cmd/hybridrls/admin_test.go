package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

const tryOut = `domain: edge
rules:
- name: held
  match: [{key: api_key}]
  accuracy: exact
  limit: 3/h
- name: tried
  match: [{key: api_key}]
  accuracy: exact
  limit: 1/h
  shadow: true
`

var adminAddress = regexp.MustCompile(`for operators" page=(http://\S+)/debug/hybrid`)

// adminURL is where a program that runs with -admin is looked at.
func (p *program) adminURL() string {
	p.t.Helper()
	p.waitFor("for operators")
	m := adminAddress.FindStringSubmatch(p.log())
	if m == nil {
		p.t.Fatalf("no address in:\n%s", p.log())
	}
	return m[1]
}

// metrics scrapes once.
func (p *program) metrics(url string) (text string, series map[string]float64) {
	p.t.Helper()
	status, text := get(p.t, url+"/metrics")
	if status != http.StatusOK {
		p.t.Fatalf("metrics: %d\n%s", status, text)
	}
	series = map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			series[name] = n
		}
	}
	return text, series
}

// waitForMetrics scrapes until all series have their values. The node's are up to a
// second old, and rules are taken up within two.
func (p *program) waitForMetrics(url string, want map[string]float64) (text string) {
	p.t.Helper()
	var wrong string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		text, got := p.metrics(url)
		wrong = ""
		for name, value := range want {
			if n, there := got[name]; !there || n != value {
				wrong = name + " is " + strconv.FormatFloat(n, 'g', -1, 64) + ", want " + strconv.FormatFloat(value, 'g', -1, 64)
			}
		}
		if wrong == "" {
			return text
		}
	}
	p.t.Fatal(wrong)
	return text
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A rule is tried out in shadow mode: nobody is denied by it, and the metrics say how
// many would be. The service's own counts are there too, from the first scrape, and
// nothing of what a gateway sent. The port ends with the program.
func TestWhatOperatorsSee(t *testing.T) {
	redistest.NeedMini(t)
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(tryOut), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "", "-config", path, "-admin", "127.0.0.1:0")
	url := p.adminURL()
	p.waitForMetrics(url, map[string]float64{
		`hybrid_rls_requests_total{result="allowed"}`: 0, `hybrid_rls_requests_total{result="denied"}`: 0, `hybrid_rls_requests_total{result="error"}`: 0,
		`hybrid_rls_reloads_total{result="success"}`: 0, `hybrid_rls_reloads_total{result="failure"}`: 0,
		`hybrid_rls_unknown_domain_requests_total`: 0, `hybrid_rls_unmatched_descriptors_total`: 0, `hybrid_rls_rules`: 2,
		`hybrid_shadowed_requests_total{limiter="edge/tried"}`: 0,
	})

	p.want(rlsv3.RateLimitResponse_OK, 3, "secret-of-alice") // the second and the third are more than edge/tried admits
	p.want(rlsv3.RateLimitResponse_OVER_LIMIT, 2, "secret-of-alice")
	for _, sent := range [][3]string{{"nowhere", "api_key", "secret-of-bob"}, {"edge", "unheard-of", "secret-of-carol"}} {
		if resp, err := p.send(t.Context(), sent[0], sent[1], sent[2]); err != nil || resp.GetOverallCode() != rlsv3.RateLimitResponse_OK {
			t.Errorf("%q: %v, %v, want OK", sent, resp, err)
		}
	}
	if _, err := p.send(t.Context(), "", "api_key", "secret-of-dave"); err == nil {
		t.Error("a request without a domain is answered")
	}
	text := p.waitForMetrics(url, map[string]float64{
		`hybrid_shadowed_requests_total{limiter="edge/tried"}`: 2,
		`hybrid_shadowed_requests_total{limiter="edge/held"}`:  0,
		`hybrid_rls_requests_total{result="allowed"}`:          5,
		`hybrid_rls_requests_total{result="denied"}`:           2,
		`hybrid_rls_requests_total{result="error"}`:            1,
		`hybrid_rls_unknown_domain_requests_total`:             1,
		`hybrid_rls_unmatched_descriptors_total`:               1,
	})
	for _, sent := range []string{"secret-of", "nowhere", "unheard-of", "api_key"} {
		if strings.Contains(text, sent) {
			t.Errorf("the metrics have %q, which a gateway sent", sent)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("what Prometheus's own checks say: %v, %v", problems, err)
	}
	if status, page := get(t, url+"/debug/hybrid"); status != http.StatusOK || !strings.Contains(page, "<html") || strings.Contains(page, "secret-of-alice") {
		t.Errorf("the page: %d, %.200q", status, page)
	}
	if status, _ := get(t, url+"/"); status != http.StatusNotFound {
		t.Errorf("what is not there: %d", status)
	}

	rewrite(t, path, "often")
	p.waitForMetrics(url, map[string]float64{`hybrid_rls_reloads_total{result="failure"}`: 1, `hybrid_rls_reloads_total{result="success"}`: 0, `hybrid_rls_rules`: 2})
	rewrite(t, path, "5/h")
	p.waitForMetrics(url, map[string]float64{`hybrid_rls_reloads_total{result="success"}`: 1, `hybrid_rls_rules`: 1})

	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.end()
	p.waitFor("hybridrls: ended")
	if strings.Contains(p.log(), "no longer served") {
		t.Errorf("its end is called a failure:\n%s", p.log())
	}
	if resp, err := http.Get(url + "/metrics"); err == nil { //nolint:noctx // nobody is there
		resp.Body.Close()
		t.Error("the port outlives the program")
	}
}

// Without -admin nothing is served to operators.
func TestNoAdminByDefault(t *testing.T) {
	redistest.NeedMini(t)
	p := start(t, "", "-config", rulesFile(t, "3/h"))
	p.want(rlsv3.RateLimitResponse_OK, 1, "k")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.end()
	if strings.Contains(p.log(), "for operators") {
		t.Errorf("it serves operators:\n%s", p.log())
	}
}
