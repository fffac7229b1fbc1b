package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/survey"
)

// committedScaling reads the points of the documentation.
func committedScaling(t *testing.T) report.Scaling {
	t.Helper()
	s, err := report.ReadScaling(root + report.ScalingNumbers)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		t.Skip("nothing has been measured yet: go run ./lab scaling")
	}
	return s
}

// The section and its pictures are what the points and the law say.
func TestScalingIsRendered(t *testing.T) {
	s := committedScaling(t)
	doc, err := os.ReadFile(root + report.ScalingDocument)
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.Files(string(doc))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		if got, err := os.ReadFile(root + path); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the numbers say (%v): go run ./lab scaling -docs", path, err)
		}
	}
}

// The points are those of the plan, in its order, each by the command of the plan.
func TestScalingFollowsThePlan(t *testing.T) {
	s, plan := committedScaling(t), survey.Scaling(1)
	if len(s) != len(plan) {
		t.Fatalf("%d points, %d are planned: go run ./lab scaling", len(s), len(plan))
	}
	for i, g := range plan {
		p := s[i]
		if p.Name != g.Name || p.Axis != g.Axis || p.Command != g.Command || p.Requests == 0 || p.Made == "" {
			t.Errorf("%q where %q is planned: %s", p.Name, g.Name, g.Command)
		}
	}
}

// Only what is missing is planned again; points that were measured are kept.
func TestResume(t *testing.T) {
	all := survey.Scaling(1)
	g := growing{quick: true}
	for _, p := range all[:3] {
		if err := g.keep(p.Point); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := g.plan(1, regexp.MustCompile(""), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan) == 0 || plan[0].Name != all[3].Name {
		t.Errorf("%d points go on from %+v", len(plan), plan)
	}
	if plan, err = g.plan(1, regexp.MustCompile("^base$"), true); err != nil || len(plan) != 0 {
		t.Errorf("%d points although it is there, %v", len(plan), err)
	}
	if plan, err = g.plan(1, regexp.MustCompile("^base$"), false); err != nil || len(plan) != 1 {
		t.Errorf("%d points, want one again; %v", len(plan), err)
	}
}
