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

// The embedded Redis runs the script, the memory a Go account; all else is the
// same. Figures differ by what the library draws for itself.
func TestStoresAgree(t *testing.T) {
	for _, e := range []Experiment{
		{Limit: hybrid.PerSecond(100), Load: 1.4, Fills: 20, Seed: 3},
		{Limit: hybrid.PerSecond(300), Load: 3, Fills: 10, Seed: 4, Accuracy: hybrid.Strict, Cost: 3},
		{Limit: hybrid.Window(100, 20*time.Second), Load: 3, Fills: 4, Seed: 5, Keys: 3, Skew: 1, Nodes: 5},
		{Limit: hybrid.PerSecond(50), Rate: 200, Fills: 20, Seed: 6, Accuracy: hybrid.Exact},
	} {
		if raceDetector && e.Seed > 3 {
			continue
		}
		t.Run(e.Command(), func(t *testing.T) {
			t.Parallel()
			a := e.Run(t)
			e.Store = Mini
			b := e.Run(t)
			for _, f := range []*Figures{a, b} {
				if err := f.Err(); err != nil {
					t.Error(err)
				}
			}
			alike(t, a, b, 0.05)
		})
	}
}

// Two runs of a seed are offered the same requests, to the nanosecond.
func TestSameSeed(t *testing.T) {
	for _, e := range []Experiment{
		{Limit: hybrid.PerSecond(100), Load: 1.4, Fills: 20, Seed: 7},
		{Limit: hybrid.PerSecond(10), Keys: 20, Skew: 0.99, Load: 1.2, Fills: 10, Seed: 8, Arrivals: Arrivals{Batch: 5}},
	} {
		a, b := e.Run(t), e.Run(t)
		if a.Requests != b.Requests || a.Offered != b.Offered || a.Ideal != b.Ideal {
			t.Errorf("offered %d and %d, ideal %d and %d", a.Offered, b.Offered, a.Ideal, b.Ideal)
		}
		alike(t, a, b, sameSeed)
	}
}

// sameSeed is how far two runs of one seed may lie apart: the library draws its
// jitter where no seed reaches.
const sameSeed = 0.05

// alike compares what two runs admitted and cost.
func alike(t *testing.T, a, b *Figures, most float64) {
	t.Helper()
	for _, v := range []struct {
		name string
		a, b int64
	}{
		{"offered", a.Offered, b.Offered},
		{"ideal", a.Ideal, b.Ideal},
		{"admitted", a.Admitted, b.Admitted},
		{"operations", a.Cost.Operations, b.Cost.Operations},
		{"denied", a.Denied, b.Denied},
	} {
		apart := math.Abs(float64(v.a - v.b))
		if apart > most*float64(max(v.a, v.b))+20*most*10 {
			t.Errorf("%s: %d and %d", v.name, v.a, v.b)
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
		if err := fs.Parse(words(strings.TrimPrefix(e.Command(), "go run ./lab run "))); err != nil {
			t.Fatal(err)
		}
		if got, want := got.withDefaults(), e.withDefaults(); !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: %s\ngot  %+v\nwant %+v", seed, e.Command(), got, want)
		}
	}
}

// words splits a command line as a shell does that knows single quotes.
func words(line string) (all []string) {
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
