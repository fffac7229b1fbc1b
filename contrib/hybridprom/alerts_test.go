package hybridprom

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
	operations := readOperations(t)
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
		if m == nil || !strings.Contains(operations, "## "+m[1]+"\n") {
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

// watch is a row of the table of what to watch in docs/operations.md.
type watch struct {
	fields []string // of Stats
	when   string
	rules  []string
}

var unpunctuated = strings.NewReplacer(",", "", ";", "")

func readWhatToWatch(t *testing.T) (rows []watch) {
	t.Helper()
	_, table, _ := strings.Cut(readOperations(t), "| `Stats` | alert when | rule |")
	table, _, _ = strings.Cut(table, "\n\n")
	field := regexp.MustCompile("`(?:Total\\.)?([A-Z][A-Za-z]+)`")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if !strings.HasPrefix(row, "| `") || len(cells) != 6 {
			continue
		}
		w := watch{when: unpunctuated.Replace(cells[2]), rules: strings.Split(strings.TrimSpace(cells[3]), ", ")}
		for _, m := range field.FindAllStringSubmatch(cells[1], -1) {
			w.fields = append(w.fields, m[1])
		}
		rows = append(rows, w)
	}
	if len(rows) < 15 {
		t.Fatalf("%d rows in the table of what to watch", len(rows))
	}
	return rows
}

// What docs/operations.md says to watch is watched, and nothing else: each rule is in
// one row, looks at the metric of a field of it, and has its numbers.
func TestAlertsAreWhatToWatch(t *testing.T) {
	shown, rules, told := shownAs(t), map[string]alert{}, map[string]int{}
	for _, a := range readAlerts(t) {
		rules[a.Alert] = a
	}
	for _, row := range readWhatToWatch(t) {
		var exprs strings.Builder
		for _, name := range row.rules {
			a, there := rules[name]
			if told[name]++; !there || told[name] > 1 {
				t.Errorf("the rule %s is there: %t, in %d rows", name, there, told[name])
			}
			exprs.WriteString(a.Expr)
			for _, number := range numbersOf(t, a) {
				if !slices.ContainsFunc(number, func(words string) bool { return strings.Contains(row.when, " "+words+" ") }) {
					t.Errorf("%s: none of %q in %q", name, number, row.when)
				}
			}
		}
		for _, field := range row.fields {
			metric, _, _ := strings.Cut(shown[field], "{")
			if metric == "" || !strings.Contains(exprs.String(), "hybrid_"+metric) {
				t.Errorf("no rule of %v looks at Stats.%s, hybrid_%s", row.rules, field, metric)
			}
		}
	}
	for name := range rules {
		if told[name] == 0 {
			t.Errorf("%s is not in the table of what to watch", name)
		}
	}
}

var (
	threshold = regexp.MustCompile(`> (0?\.?[0-9]*[1-9][0-9]*)\b`)
	window    = regexp.MustCompile(`increase\([a-z_]+\[([0-9]+)m\]\) > [1-9]`)
)

// numbersOf is what a row must say of a rule, each in one of several words: the
// threshold, what it is counted over, and how long it lasts. A minute is but for what
// is rare, and is gone from a window soon.
func numbersOf(t *testing.T, a alert) (numbers [][]string) {
	t.Helper()
	if m := threshold.FindStringSubmatch(a.Expr); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, []string{fmt.Sprintf("above %.6g s", n), fmt.Sprintf("%.6g ms", 1000*n),
			fmt.Sprintf("above %.6g %%", 100*n), fmt.Sprintf("more than %.6g", n)})
	}
	if m := window.FindStringSubmatch(a.Expr); m != nil {
		numbers = append(numbers, []string{"in " + m[1] + " min"})
	}
	lasts, err := time.ParseDuration(*a.For)
	switch {
	case err != nil:
		t.Fatal(err)
	case lasts == 0:
		numbers = append(numbers, []string{"at once"})
	case lasts < time.Minute:
		numbers = append(numbers, []string{fmt.Sprintf("for %.0f s", lasts.Seconds())})
	case lasts > time.Minute:
		numbers = append(numbers, []string{fmt.Sprintf("for %.0f min", lasts.Minutes())})
	}
	return numbers
}
