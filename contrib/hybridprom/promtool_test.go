package hybridprom

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"

	"github.com/hybridlimit/hybrid"
)

// promtool runs the tool of that name, which comes with the Prometheus server, and
// fails the test unless it succeeds. Without the binary, the test is skipped; if
// HYBRID_REQUIRE_PROMTOOL=1, it fails.
func promtool(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("HYBRID_REQUIRE_PROMTOOL") == "1" {
			t.Fatal("promtool is not on PATH, and HYBRID_REQUIRE_PROMTOOL=1")
		}
		t.Skip("promtool is not on PATH: install Prometheus (apt install prometheus, brew install prometheus) to run this test")
	}
	cmd := exec.Command("promtool", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// What is scraped passes Prometheus's own check, too.
func TestPromtoolTakesTheMetrics(t *testing.T) {
	node := newNode(t, nowhere)
	newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
	if said := promtool(t, fresh(t, node).text(), "check", "metrics"); said != "" {
		t.Error(said)
	}
}

func TestPromtoolTakesTheAlerts(t *testing.T) {
	promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", "alerts.yml")
	promtool(t, "", "test", "rules", "alerts_test.yml")
}

// The queries of the dashboard are well formed: promtool reads them as the rules
// that they could be.
func TestPromtoolTakesTheDashboard(t *testing.T) {
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for _, p := range readDashboard(t).queried() {
		for _, target := range p.Targets {
			rules = append(rules, rule{"panel:" + strings.Join(onlyLetters(p.Title), "_") + ":" + target.RefID, filledIn(target.Expr)})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}

func onlyLetters(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
}
