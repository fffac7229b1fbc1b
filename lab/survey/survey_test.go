package survey

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/baseline"
	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// Every planned run makes sense, is one of its kind, and says how to repeat it.
func TestPlan(t *testing.T) {
	seen := map[report.Row]bool{}
	for _, r := range Plan() {
		if err := r.Experiment.Validate(); err != nil {
			t.Errorf("%s: %v", r.Command, err)
		}
		what := r.Row
		what.Command = ""
		if seen[what] {
			t.Errorf("twice: %+v", what)
		}
		seen[what] = true
		if isLibrary := r.Experiment.Subject == nil; isLibrary != strings.HasPrefix(r.Subject, "hybrid, ") ||
			isLibrary == strings.Contains(r.Command, " -subject=") || !strings.HasPrefix(r.Command, "go run ./lab run ") {
			t.Errorf("%s is run by %q", r.Subject, r.Command)
		}
	}
}

// A row's figures are the run's.
func TestMeasure(t *testing.T) {
	e := sim.Experiment{Limit: hybrid.PerSecond(100), Load: 2, Fills: 20}
	row, err := scheme(baseline.Exact).run("set", 2, "name", e).Measure(t)
	if err != nil {
		t.Fatal(err)
	}
	if row.Set != "set" || row.X != 2 || row.Requests < 3000 || row.Blocked != row.Requests || row.Operations != row.Requests ||
		row.Admitted == 0 || row.Within < 100 || row.Over() != 0 {
		t.Errorf("got %+v", row)
	}
	if math.Abs(row.MeanDelay()-0.6) > 0.01 {
		t.Errorf("a round trip of 0.6 ms took %.3f ms", row.MeanDelay())
	}
}

// A broken promise of the library is an error, and what others do is not.
func TestBrokenPromises(t *testing.T) {
	e := sim.Experiment{Limit: hybrid.PerSecond(100), Load: 20, Fills: 3, Quiet: true}
	row, err := scheme(baseline.PostPaid(syncIntervals[6])).run("set", 0, "", e).Measure(t)
	if err != nil || row.Over() < 1 {
		t.Errorf("post-paid: %v, over %.2f", err, row.Over())
	}
	row, err = library(hybrid.Strict).run("set", 0, "", e).Measure(t)
	if err != nil || row.Over() != 0 || row.Requests == 0 {
		t.Errorf("library: %v, over %.2f", err, row.Over())
	}
}

// The crowds that are worst for floors are admitted no more than the floors permit,
// and nearly as much: the experiment does find the worst.
func TestCrowds(t *testing.T) {
	for _, a := range []hybrid.Accuracy{hybrid.Balanced, hybrid.Within(0.3, 0)} {
		e := crowds(100)
		e.Accuracy, e.Span = a, 12*time.Second
		f := e.Run(t)
		t.Logf("%v: over %.3f", a, f.Over())
		if err := f.Err(); err != nil {
			t.Errorf("%v: %v\nagain: %s", a, err, f.Command())
		}
		if over := f.Over(); over > a.Over() || over < 0.5*a.Over() {
			t.Errorf("%v: %.1f %% over at worst, want nearly %.0f %%", a, 100*over, 100*a.Over())
		}
	}
}
