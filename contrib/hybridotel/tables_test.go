package hybridotel

import (
	"reflect"
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
	"SliceTokens":     "slice.admitted_tokens",
	"Granted":         "slice.granted_tokens",
	"Returned":        "slice.returned_tokens",
	"Recalled":        "slice.recalled_tokens",
	"Expired":         "slice.expired_tokens",
	"Dropped":         "slice.drops",
	"Blocked":         "blocked_requests",
	"Shadowed":        "shadowed_requests",
	"Operations":      "operations",
	"NotRun":          "failed_operations{outcome=not_run}",
	"Unknown":         "failed_operations{outcome=unknown}",
	"Rebuilt":         "rebuilt_accounts",
	"InvalidTiers":    "tier.errors",
	"Keys":            "key.count",
	"Fleet":           "fleet.size",
	"Overshoot":       "overshoot",

	"Calls":        "store.calls",
	"StoreDowns":   "store.outages",
	"StoreDown":    "store.down",
	"Poisoned":     "store.refused_accounts",
	"RecallErrors": "recall.errors",
	"SyncLag":      "store.lag",
	"MaxKeys":      "key.limit",
	"Evictions":    "key.evictions",
	"HooksDropped": "hook.dropped_events",
	"LogsDropped":  "log.dropped_lines",

	"Limiters": "", "Total": "", "StoreEvents": "", "Failures": "", "CallTime": "", "BatchSize": "",
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
