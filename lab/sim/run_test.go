package sim

import (
	"flag"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// The embedded Redis runs the script, the memory a Go account: on the same seed
// they come to nearly the same. The first has connections that must be made, and
// a script that must be loaded; so now and then a call is later.
func TestStoresAgree(t *testing.T) {
	for _, e := range []Experiment{
		{Limit: hybrid.PerSecond(100), Load: 1.4, Fills: 20, Seed: 3},
		{Limit: hybrid.PerSecond(300), Load: 3, Fills: 10, Seed: 4, Accuracy: hybrid.Strict, Cost: 3, Place: Hopping},
		{Limit: hybrid.PerSecond(50), Rate: 200, Fills: 20, Seed: 6, Accuracy: hybrid.Exact},
		{Limit: hybrid.Window(100, 20*time.Second), Load: 3, Fills: 4, Seed: 5, Nodes: 5},
		{Limit: hybrid.PerSecond(10), Keys: 20, Skew: 0.99, Load: 1.2, Fills: 10, Seed: 8},
	} {
		if raceDetector && e.Seed > 3 {
			continue
		}
		t.Run(e.Command(), func(t *testing.T) {
			t.Parallel()
			a := e.Run(t)
			e.Store = Mini
			same(t, a, e.Run(t), 0.05)
		})
	}
}

// Two runs of a seed are the same.
func TestSameSeed(t *testing.T) {
	for _, e := range []Experiment{
		{Limit: hybrid.PerSecond(100), Load: 1.4, Fills: 20, Seed: 7, Trip: Trip{Kind: Exponential, Mean: time.Millisecond, High: 9 * time.Millisecond}},
		{Limit: hybrid.PerSecond(100), Load: 1.4, Fills: 20, Seed: 7, Accuracy: hybrid.Strict, Place: OneNode},
		{Limit: hybrid.PerSecond(10), Keys: 20, Skew: 0.99, Load: 1.2, Fills: 10, Seed: 8, Arrivals: Arrivals{Batch: 5}},
	} {
		t.Run(e.Command(), func(t *testing.T) {
			t.Parallel()
			apart := 0.0
			if e.Keys > 1 { // of several that are due at one moment, it is left to chance which is first
				apart = 0.05
			}
			same(t, e.Run(t), e.Run(t), apart)
		})
	}
}

// same compares what two runs admitted and cost: counts may be apart by a share of what was
// offered, since a reply that comes a moment later changes a few dozen of them.
func same(t *testing.T, a, b *Figures, apart float64) {
	t.Helper()
	for _, f := range []*Figures{a, b} {
		if err := f.Err(); err != nil {
			t.Error(err)
		}
	}
	for _, v := range []struct {
		name string
		a, b float64
	}{
		{"offered", float64(a.Offered), float64(b.Offered)},
		{"ideal", float64(a.Ideal), float64(b.Ideal)},
		{"admitted", float64(a.Admitted), float64(b.Admitted)},
		{"denied", float64(a.Denied), float64(b.Denied)},
		{"falsely denied", float64(a.FalseDenials), float64(b.FalseDenials)},
		{"operations", float64(a.Cost.Operations), float64(b.Cost.Operations)},
		{"blocked", float64(a.Blocked), float64(b.Blocked)},
		{"delay of each", float64(a.Delay) / float64(max(a.Blocked, 1)), float64(b.Delay) / float64(max(b.Blocked, 1))},
		{"excess", a.Excess, b.Excess},
	} {
		slack := math.Abs(v.a)
		switch v.name {
		case "delay of each":
		case "falsely denied": // those between a window's edge and the reply that tells of it
			slack = 3 * float64(a.Offered)
		default:
			slack = max(slack, float64(a.Offered))
		}
		if math.Abs(v.a-v.b) > apart*slack {
			t.Errorf("%s: %v and %v", v.name, v.a, v.b)
		}
	}
}

// What Command prints is read as the same experiment.
func TestCommand(t *testing.T) {
	for seed := range uint64(50) {
		e := Mix(seed)
		var got Experiment
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		got.Bind(fs)
		if err := fs.Parse(shellWords(strings.TrimPrefix(e.Command(), "go run ./lab run "))); err != nil {
			t.Fatal(err)
		}
		if got, want := got.withDefaults(), e.withDefaults(); !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: %s\ngot  %+v\nwant %+v", seed, e.Command(), got, want)
		}
	}
}

// shellWords splits a command line as a shell does that knows single quotes.
func shellWords(line string) (all []string) {
	quoted := false
	for _, part := range strings.FieldsFunc(line, func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	}) {
		all = append(all, strings.ReplaceAll(part, "'", ""))
	}
	return all
}
