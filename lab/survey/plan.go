// Package survey measures what docs/accuracy.md shows: it knows which runs the
// tables and charts of package report are made of.
package survey

import (
	"fmt"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/baseline"
	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// Run is a row that is to be measured, and the experiment that does it.
type Run struct {
	report.Row // without figures
	Experiment sim.Experiment
}

// contender is a setting of the library, or another scheme.
type contender struct {
	name     string
	accuracy hybrid.Accuracy
	scheme   *baseline.Kind // nil: the library
}

func library(a hybrid.Accuracy) contender {
	return contender{name: "hybrid, " + a.String(), accuracy: a}
}

func scheme(k baseline.Kind) contender {
	return contender{name: k.Name(), scheme: &k}
}

// everybody is the library in its two usual settings, and all other schemes.
func everybody() []contender {
	all := []contender{library(hybrid.Balanced), library(hybrid.Strict)}
	for _, k := range baseline.All() {
		all = append(all, scheme(k))
	}
	return all
}

// Plan is all runs, in the order of the rows.
func Plan() (runs []Run) {
	for _, part := range [][]Run{scenarios(), dial(), schemes(), loads(), sizes(), intervals()} {
		runs = append(runs, part...)
	}
	return runs
}

// run makes the row of a contender in an experiment.
func (c contender) run(set string, x float64, name string, e sim.Experiment) Run {
	e.Accuracy = c.accuracy
	row := report.Row{Set: set, Subject: c.name, X: x, Name: name}
	if c.scheme != nil {
		e.Subject = c.scheme.Start
		row.Command = " -subject=" + c.scheme.String()
	}
	row.Command = e.Command() + row.Command
	return Run{row, e}
}

// service is the traffic of a small one: keys of very different popularity, most
// far below their limit and a few beyond it, that nobody has asked for before.
var service = sim.Experiment{Keys: 1000, Skew: 0.99, Load: 0.1, Quiet: true, Fills: 5, Seed: 5}

// dial is what each setting of the library makes of a service, and how much too
// much it admits to the crowds that are worst for it.
func dial() (runs []Run) {
	for _, a := range []hybrid.Accuracy{hybrid.Exact, hybrid.Strict, hybrid.Balanced, hybrid.Within(0.3, 0)} {
		runs = append(runs, library(a).run(report.Dial, a.Over(), "", service))
		runs = append(runs, library(a).run(report.DialOver, a.Over(), "", crowds(100)))
	}
	return runs
}

// crowds come again and again, each when the one before is forgotten: it uses the
// limit up on one node, and then comes to all, of which the others have not been
// told yet. Nothing is worse for floors.
func crowds(load float64) sim.Experiment {
	gone := time.Duration(3 / load * float64(time.Second))
	return sim.Experiment{Limit: hybrid.PerSecond(1000), Quiet: true, Span: 30 * time.Second, Seed: 4, Scenes: sim.Scenes{
		{For: gone, Load: load, Place: sim.OneNode},
		{For: time.Second, Load: load, Place: sim.Uniform},
		{For: 4 * time.Second},
	}}
}

// schemes is what the other schemes make of the same service.
func schemes() (runs []Run) {
	for _, k := range baseline.All() {
		runs = append(runs, scheme(k).run(report.Schemes, 0, "", service))
	}
	return runs
}

var offeredLoads = []float64{0.01, 0.03, 0.1, 0.3, 0.5, 0.8, 0.95, 1.1, 1.4, 2, 5, 10, 20, 50}

// loads is what everybody makes of one key's load that moves between nodes.
func loads() (runs []Run) {
	for _, c := range everybody() {
		for _, load := range offeredLoads {
			e := sim.Experiment{Load: load, Place: sim.Hopping, Seed: 2}
			if load >= 5 {
				e.Fills = 5 // as many requests as at lower loads
			}
			runs = append(runs, c.run(report.Load, load, "", e))
		}
	}
	return runs
}

// limitSizes are limits per minute, each with a run of as many fill times as its
// few or many tokens need.
var limitSizes = []struct {
	tokens int64
	fills  float64
}{{5, 100}, {20, 60}, {100, 30}, {300, 15}, {1000, 15}, {3000, 10}, {10_000, 5}, {100_000, 2}}

// sizes is what a request costs the store over the size of the limit. The static
// scheme has no store.
func sizes() (runs []Run) {
	contenders := []contender{library(hybrid.Balanced), library(hybrid.Strict), scheme(baseline.Exact), scheme(baseline.FixedSlices),
		scheme(baseline.PostPaid(10 * time.Millisecond)), scheme(baseline.PostPaid(100 * time.Millisecond)), scheme(baseline.PostPaid(time.Second))}
	for _, part := range []struct {
		set  string
		load float64
	}{{report.SizeHalf, 0.5}, {report.SizeOver, 1.4}} {
		for _, c := range contenders {
			for _, s := range limitSizes {
				e := sim.Experiment{Limit: hybrid.PerMinute(s.tokens), Load: part.load, Fills: s.fills, Seed: 3}
				runs = append(runs, c.run(part.set, float64(s.tokens), "", e))
			}
		}
	}
	return runs
}

var syncIntervals = []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// intervals is how much too much crowds are admitted over the interval of
// synchronisation. The library's does not depend on it, nor on the load.
func intervals() (runs []Run) {
	for _, load := range []float64{10, 2} {
		for _, c := range []contender{library(hybrid.Balanced), library(hybrid.Strict), {name: "post-paid"}} {
			if load == 2 && c.name != "post-paid" {
				continue
			}
			for _, d := range syncIntervals {
				e := crowds(load)
				e.Sync = d
				runs = append(runs, c.at(d, load).run(report.Interval, 1000*d.Seconds(), "", e))
			}
		}
	}
	return runs
}

// at is a post-paid contender with an interval, named after its load.
func (c contender) at(every time.Duration, load float64) contender {
	if c.name == "post-paid" {
		k := baseline.PostPaid(every)
		c.scheme = &k
		c.name = fmt.Sprintf("post-paid, load %g×", load)
	}
	return c
}
