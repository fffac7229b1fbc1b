package main

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"testing"

	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/survey"
)

// root is where the generated files are, from here.
const root = "../"

// committed reads the numbers of the documentation.
func committed(t *testing.T) report.Data {
	t.Helper()
	file, err := os.ReadFile(root + report.Numbers)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("nothing has been measured yet: go run ./lab docs")
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Tables and pictures are what the numbers say.
func TestDocsAreRendered(t *testing.T) {
	d := committed(t)
	doc, err := os.ReadFile(root + report.Document)
	if err != nil {
		t.Fatal(err)
	}
	files, err := d.Files(string(doc))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		if got, err := os.ReadFile(root + path); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the numbers say (%v): go run ./lab docs -render", path, err)
		}
	}
}

// The numbers are of the runs that are planned, each of them.
func TestDocsFollowThePlan(t *testing.T) {
	d, plan := committed(t), survey.Plan()
	if len(d.Rows) != len(plan) {
		t.Errorf("%d rows, %d runs are planned: go run ./lab docs", len(d.Rows), len(plan))
	}
	for _, r := range plan {
		if _, ok := d.Find(r.Row); !ok {
			t.Errorf("not measured: %s, %s: %s", r.Set, r.Subject, r.Command)
		}
	}
}

// A few cheap rows are measured again. Other schemes repeat exactly. The
// library draws random numbers of its own, so that its costs vary a little; what
// is asked of it does not.
func TestDocsRepeat(t *testing.T) {
	d := committed(t)
	for _, r := range survey.Plan() {
		if r.Set != report.Load || r.X != 1.4 && r.X != 5 {
			continue
		}
		old, ok := d.Find(r.Row)
		if !ok {
			continue // TestDocsFollowThePlan tells
		}
		switch {
		case r.Experiment.Subject != nil && r.X == 1.4:
			repeatsExactly(t, r, old)
		case r.Experiment.Subject == nil && r.X == 5:
			repeatsNearly(t, r, old)
		}
	}
}

func repeatsExactly(t *testing.T, r survey.Run, old report.Row) {
	t.Helper()
	if got, err := r.Measure(t); err != nil || got != old {
		t.Errorf("%s:\nnow %+v, %v\nwas %+v", r.Command, got.Figures, err, old.Figures)
	}
}

func repeatsNearly(t *testing.T, r survey.Run, old report.Row) {
	t.Helper()
	got, err := r.Measure(t)
	if err != nil {
		t.Fatal(err)
	}
	apart := func(x, y, part float64) bool { return math.Abs(x-y) > part*max(x, y) }
	if got.Requests != old.Requests || got.Ideal != old.Ideal ||
		apart(got.OperationsPerRequest(), old.OperationsPerRequest(), 0.2) || apart(got.OfIdeal(), old.OfIdeal(), 0.08) {
		t.Errorf("%s:\nnow %+v\nwas %+v", r.Command, got.Figures, old.Figures)
	}
}
