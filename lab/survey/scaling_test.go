package survey

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/law"
	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// Every point makes sense, is one of its kind, and each axis has four, with the base.
func TestScalingPlan(t *testing.T) {
	names, on := map[string]bool{}, map[string]int{}
	for _, g := range Scaling(1) {
		if err := g.Experiment.Validate(); err != nil {
			t.Errorf("%s: %v", g.Name, err)
		}
		if quick, ok := g.Quick(); ok && quick.Experiment.Validate() != nil {
			t.Errorf("%s: its quick form makes no sense", g.Name)
		}
		if names[g.Name] {
			t.Errorf("twice: %s", g.Name)
		}
		names[g.Name] = true
		on[g.Axis]++
		if g.Sampled != strings.Contains(g.Command, "-sample") || !strings.HasPrefix(g.Command, "go run ./lab run ") {
			t.Errorf("%s is run by %q", g.Name, g.Command)
		}
	}
	for _, axis := range []string{report.ByKeys, report.ByNodes, report.ByRate, report.ByLimit} {
		if on[axis] != 3 {
			t.Errorf("%d points on %s besides the base", on[axis], axis)
		}
	}
	if !names[report.Base] || !names[report.Far] {
		t.Error("no base, or nothing far from it")
	}
}

// small is a service that takes seconds: shorter limits, fewer keys.
func small(rate float64) sim.Experiment {
	return sim.Experiment{Nodes: 20, Keys: 3000, Skew: 0.99, Rate: rate, Limit: hybrid.Per(1000, 10*time.Second),
		Still: 15 * time.Second, Warm: 40 * time.Second, Span: 10 * time.Second, Seed: 1}
}

// The law against a small fleet, under a light and a heavy load.
func TestTheLawHolds(t *testing.T) {
	for _, rate := range []float64{800, 8000} {
		e := small(rate)
		f := e.Run(t)
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		c := law.Service{Nodes: e.Nodes, Keys: e.Keys, Skew: e.Skew, Rate: rate, Burst: 1000, Fill: 10 * time.Second,
			Over: 0.1, Since: e.Warm - e.Still + e.Span/2}.Predict()
		seconds := e.Span.Seconds()
		for _, v := range []struct {
			what      string
			got, want float64
			slack     float64
		}{
			{"operations", c.Operations(), float64(f.Cost.Operations) / seconds, 0.3},
			{"round trips", c.Calls, float64(f.Cost.RoundTrips+f.Cost.Polls) / seconds, 0.3},
			{"bytes sent", c.Sent, float64(f.Cost.Sent) / seconds, 0.3},
			{"bytes received", c.Received, float64(f.Cost.Received) / seconds, 0.5}, // most of them are marks, which the law knows least of
			{"keys remembered", c.Remembered, f.Remembered, 0.35},
		} {
			t.Logf("%g requests per second: %s: %.1f measured, %.1f by the law", rate, v.what, v.want, v.got)
			if math.Abs(v.got/v.want-1) > v.slack {
				t.Errorf("%g requests per second: %s: %.1f measured, %.1f by the law", rate, v.what, v.want, v.got)
			}
		}
	}
}

// A point's figures are the run's, and a sample says nothing of calls.
func TestMeasureAPoint(t *testing.T) {
	for _, sample := range []float64{0, 20} {
		e := small(500)
		e.Sample, e.Span = sample, 5*time.Second
		p, err := growth("name", report.ByKeys, e).Measure(t)
		if err != nil {
			t.Fatal(err)
		}
		if p.Limit != 6000 || p.Warm != 25 || p.Span != 5 || p.Nodes != 20 || p.Sampled != (sample > 0) {
			t.Errorf("%+v", p)
		}
		if sum := p.Asked + p.Refused + p.Refilled + p.Paced + p.Renewed + p.Returned + p.Told; sum != p.Operations || sum == 0 {
			t.Errorf("%d operations by reason, %d in all", sum, p.Operations)
		}
		if math.Abs(float64(p.Requests)/2500-1) > 0.2 || (p.RoundTrips > 0) == p.Sampled || (p.Remembered > 0) == p.Sampled {
			t.Errorf("%+v", p)
		}
	}
}
