package hybridprom

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// alert is one rule of alerts.yml.
type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         *string           `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readAlerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `yaml:"name"`
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	readYAML(t, "alerts.yml", &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 15 {
		t.Fatalf("only %d alerts", len(all))
	}
	return all
}

// readYAML reads a file in which there is nothing that is not known.
func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(err)
	}
}

var section = regexp.MustCompile(`See docs/operations\.md, "([^"]+)"\.$`)

// Each alert waits, has a severity, and says what it means and where to read on.
func TestAlertsAreComplete(t *testing.T) {
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range readAlerts(t) {
		names = append(names, a.Alert)
		if !strings.HasPrefix(a.Alert, "Hybrid") || a.For == nil {
			t.Errorf("%s: its name begins with Hybrid, and it has a for", a.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		}
		if a.Annotations["summary"] == "" || len(a.Annotations) != 2 {
			t.Errorf("%s: its annotations are %v", a.Alert, a.Annotations)
		}
		m := section.FindStringSubmatch(a.Annotations["description"])
		if m == nil || !bytes.Contains(operations, []byte("## "+m[1]+"\n")) {
			t.Errorf("%s: no section of docs/operations.md in %q", a.Alert, a.Annotations["description"])
		}
	}
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("a name is there twice: %v", names)
	}
}

// alerts_test.yml sees each alert quiet and firing.
func TestAlertsHaveTests(t *testing.T) {
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name string `yaml:"alertname"`
				Exp  []any  `yaml:"exp_alerts"`
				At   string `yaml:"eval_time"`
			} `yaml:"alert_rule_test"`
			Rest map[string]any `yaml:",inline"`
		} `yaml:"tests"`
		Rest map[string]any `yaml:",inline"`
	}
	readYAML(t, "alerts_test.yml", &file)
	quiet, firing := map[string]int{}, map[string]int{}
	for _, test := range file.Tests {
		for _, a := range test.Alerts {
			if len(a.Exp) == 0 {
				quiet[a.Name]++
			} else {
				firing[a.Name]++
			}
		}
	}
	for _, a := range readAlerts(t) {
		if quiet[a.Alert] == 0 || firing[a.Alert] == 0 {
			t.Errorf("%s is seen quiet %d times and firing %d times", a.Alert, quiet[a.Alert], firing[a.Alert])
		}
	}
}

// watchedAs is where an alert finds a field of Stats.
var watchedAs = map[string]string{
	"StoreDown": "store_up", "StoreDowns": "store_breaker_opens_total", "SyncLag": "store_sync_lag_seconds", "CallTime": "store_call_duration_seconds",
	"Overshoot": "overshoot_ratio", "FallbackAllowed": "decisions_total", "FallbackDenied": "decisions_total", "Unknown": "operations_unknown_total",
	"NotRun": "operations_not_run_total", "Failures": "operations_not_run_total", "Blocked": "blocked_requests_total", "Poisoned": "poisoned_accounts_total",
	"Rebuilt": "accounts_rebuilt_total", "Dropped": "slices_dropped_total", "Evictions": "evictions_total", "RecallErrors": "recall_errors_total",
	"Fleet": "fleet_nodes", "InvalidTiers": "invalid_tiers_total", "HooksDropped": "hooks_dropped_total", "LogsDropped": "logs_dropped_total",
}

// What docs/operations.md says to watch is watched: each field of Stats in its
// table has a metric in some alert.
func TestAlertsCoverWhatToWatch(t *testing.T) {
	var exprs strings.Builder
	for _, a := range readAlerts(t) {
		exprs.WriteString(a.Expr)
	}
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(operations), "| `Stats` | alert when")
	table, _, _ = strings.Cut(table, "\n\n")
	fields := regexp.MustCompile("`(?:Total\\.)?([A-Z][A-Za-z]+)`")
	rows := 0
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		rows++
		for _, m := range fields.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			if metric, known := watchedAs[m[1]]; !known || !strings.Contains(exprs.String(), "hybrid_"+metric) {
				t.Errorf("no alert looks at Stats.%s, hybrid_%s", m[1], metric)
			}
		}
	}
	if rows < 15 {
		t.Errorf("%d rows in the table of what to watch", rows)
	}
}
