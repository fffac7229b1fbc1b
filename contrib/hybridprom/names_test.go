package hybridprom

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/hybridlimit/hybrid"
)

func readOperations(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shownAs says which series shows a field of Stats or LimiterStats, without its
// label limiter: decisions_total{path="exact", result="denied"}. It finds out by
// reading Stats in which nothing else is there.
func shownAs(t *testing.T) map[string]string {
	t.Helper()
	shown := map[string]string{}
	for field := range reflect.TypeFor[hybrid.Stats]().Fields() {
		s := &snapshot{}
		fill(reflect.ValueOf(&s.stats).Elem().FieldByIndex(field.Index))
		shown[field.Name] = differs(t, field.Name, &snapshot{}, s)
	}
	for field := range reflect.TypeFor[hybrid.LimiterStats]().Fields() {
		var l hybrid.LimiterStats
		fill(reflect.ValueOf(&l).Elem().FieldByIndex(field.Index))
		before := &snapshot{limiters: map[string]hybrid.LimiterStats{"api": {}}}
		shown[field.Name] = differs(t, field.Name, before, &snapshot{limiters: map[string]hybrid.LimiterStats{"api": l}})
	}
	return shown
}

// fill makes a field differ from zero.
func fill(v reflect.Value) {
	switch {
	case v.CanUint():
		v.SetUint(7)
	case v.CanInt():
		v.SetInt(7)
	case v.CanFloat():
		v.SetFloat(7)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Type() == reflect.TypeFor[hybrid.Histogram]():
		v.Set(reflect.ValueOf(hybrid.Histogram{Sum: 7}))
	case v.Type() == reflect.TypeFor[map[string]uint64]():
		v.Set(reflect.ValueOf(map[string]uint64{"timeout": 7}))
	}
}

// differs returns the one series that two snapshots do not have in common, or "".
func differs(t *testing.T, field string, before, after *snapshot) (series string) {
	t.Helper()
	was := seriesOf(before)
	for name, value := range seriesOf(after) {
		if old, there := was[name]; there && old == value {
			continue
		}
		if series != "" {
			t.Errorf("%s shows as %s and as %s", field, series, name)
		}
		series = name
	}
	return series
}

func seriesOf(s *snapshot) map[string]float64 {
	all := map[string]float64{}
	for _, m := range metrics {
		m.read(s, func(value float64, values ...string) {
			var labels []string
			for i, label := range m.labels {
				switch label {
				case "limiter":
				case "cause": // any
					labels = append(labels, label)
				default:
					labels = append(labels, fmt.Sprintf("%s=%q", label, values[i]))
				}
			}
			name := m.name
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ", ") + "}"
			}
			all[name] = value
		})
	}
	for _, h := range histograms {
		all[h.name] = h.read(&s.stats).Sum
	}
	return all
}

// docs/operations.md tells whoever holds the name of a metric which field it is.
func TestOperationsNamesTheMetrics(t *testing.T) {
	shown := shownAs(t)
	_, table, _ := strings.Cut(readOperations(t), "| field |")
	table, _, _ = strings.Cut(table, "\n\n")
	quoted := regexp.MustCompile("`([^`]+)`")
	named := map[string]bool{"Limiters": true, "Total": true} // not numbers, but all of these
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if !strings.HasPrefix(row, "| `") || len(cells) != 5 {
			continue
		}
		field, name := quoted.FindStringSubmatch(cells[1])[1], ""
		if m := quoted.FindStringSubmatch(cells[2]); m != nil {
			name = m[1]
		}
		if want, known := shown[field]; !known || name != want || named[field] {
			t.Errorf("%s is %q, want %q (known: %t, named before: %t)", field, name, want, known, named[field])
		}
		named[field] = true
	}
	for field := range shown {
		if !named[field] {
			t.Errorf("the metric of %s is not named: %s", field, shown[field])
		}
	}
}
