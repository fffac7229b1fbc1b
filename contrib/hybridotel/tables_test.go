package hybridotel

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/hybridlimit/hybrid"
)

// shownAs says which data point shows a field of Stats or LimiterStats. Those that are
// empty are no number, or are not of a limiter: other tests look at them.
var shownAs = map[string]string{
	"FloorAllowed":    "requests{path=floor,result=allowed}",
	"ExactAllowed":    "requests{path=exact,result=allowed}",
	"ExactDenied":     "requests{path=exact,result=denied}",
	"MemoDenied":      "requests{path=memo,result=denied}",
	"FallbackAllowed": "requests{path=fallback,result=allowed}",
	"FallbackDenied":  "requests{path=fallback,result=denied}",
	"SliceTokens":     "slice.tokens",
	"Granted":         "slice.granted_tokens",
	"Returned":        "slice.returned_tokens",
	"Recalled":        "slice.recalled_tokens",
	"Expired":         "slice.expired_tokens",
	"Dropped":         "dropped_slices",
	"Blocked":         "blocked_requests",
	"Shadowed":        "shadowed_requests",
	"Operations":      "operations",
	"NotRun":          "failed_operations{outcome=not_run}",
	"Unknown":         "failed_operations{outcome=unknown}",
	"Rebuilt":         "rebuilt_accounts",
	"InvalidTiers":    "invalid_tiers",
	"Keys":            "key.count",
	"Waiters":         "waiter.count",
	"Fleet":           "fleet.size",
	"Overshoot":       "overshoot",

	"Calls":        "store.calls",
	"StoreDowns":   "store.outages",
	"StoreDown":    "store.down",
	"Poisoned":     "poisoned_accounts",
	"RecallErrors": "recall.errors",
	"SyncLag":      "store.sync_lag",
	"MaxKeys":      "key.limit",
	"Evictions":    "key.evictions",
	"HooksDropped": "hook.dropped_events",
	"LogsDropped":  "log.dropped_lines",

	"Limiters": "", "Total": "", "StoreEvents": "", "Failures": "", "CallTime": "", "BatchSize": "",
}

// notInTables are the fields that the collector shows by itself.
var notInTables = map[string]string{
	"Failures": "operation.failures{error.type}", "CallTime": "store.call.duration", "BatchSize": "store.call.operations",
}

// docs/operations.md tells whoever holds the name of an instrument which field it is.
func TestOperationsNamesTheInstruments(t *testing.T) {
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(operations), "| field |")
	table, _, _ = strings.Cut(table, "\n\n")
	quoted, plain := regexp.MustCompile("`([^`]+)`"), strings.NewReplacer(`"`, "", ", ", ",")
	named := map[string]bool{"Limiters": true, "Total": true} // not numbers, but all of these
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if !strings.HasPrefix(row, "| `") || len(cells) != 5 {
			continue
		}
		field, name := quoted.FindStringSubmatch(cells[1])[1], ""
		if m := quoted.FindStringSubmatch(cells[3]); m != nil {
			name = plain.Replace(m[1])
		}
		if want, known := shownAs[field]; !known || name != want+notInTables[field] || named[field] {
			t.Errorf("%s is %q, want %q (known: %t, named before: %t)", field, name, want+notInTables[field], known, named[field])
		}
		named[field] = true
	}
	for field := range shownAs {
		if !named[field] {
			t.Errorf("the instrument of %s is not named", field)
		}
	}
}

// What a node counts is what is shown: each number of Stats in one data point.
func TestEveryCountIsShown(t *testing.T) {
	eachField(t, nodeWholes, nodeParts)
	eachField(t, limiterWholes, limiterParts)
}

func eachField[S hybrid.Stats | hybrid.LimiterStats](t *testing.T, wholes []whole[S], parts []part[S]) {
	t.Helper()
	for field := range reflect.TypeFor[S]().Fields() {
		point, known := shownAs[field.Name]
		if known && point == "" {
			continue
		}
		var s S
		want := 7.0
		switch v := reflect.ValueOf(&s).Elem().FieldByIndex(field.Index); {
		case v.CanUint():
			v.SetUint(7)
		case field.Name == "SyncLag":
			v.SetInt(7e9)
		case v.CanInt():
			v.SetInt(7)
		case v.CanFloat():
			v.SetFloat(7)
		default:
			v.SetBool(true)
			want = 1
		}
		if got := notZero(&s, wholes, parts); len(got) != 1 || got[point] != want {
			t.Errorf("%T.%s shows as %v, want %s", s, field.Name, got, point)
		}
	}
}

// notZero is the data points of one S that are not 0.
func notZero[S any](s *S, wholes []whole[S], parts []part[S]) map[string]float64 {
	all := map[string]float64{}
	for _, w := range wholes {
		if v := w.value(s); v != 0 {
			all[pointName(w.name, attribute.NewSet(w.attrs...))] = float64(v)
		}
	}
	for _, p := range parts {
		if v := p.value(s); v != 0 {
			all[p.name] = v
		}
	}
	return all
}
