package survey

import (
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// scenarios are the rows that have targets, and two of fixed windows, each in both
// usual settings.
func scenarios() (runs []Run) {
	for _, r := range append(sim.Rows(), windows()...) {
		r.Experiment.Seed = 1
		for _, a := range []hybrid.Accuracy{hybrid.Balanced, hybrid.Strict} {
			runs = append(runs, library(a).run(report.Scenarios, 0, r.Name, r.Experiment))
		}
	}
	return runs
}

func windows() []sim.Row {
	l := hybrid.Window(1000, time.Minute)
	return []sim.Row{
		{Name: "window of 1000/min, uniform, 140 %", Experiment: sim.Experiment{Limit: l, Load: 1.4}},
		{Name: "window of 1000/min, hopping node, 140 %", Experiment: sim.Experiment{Limit: l, Load: 1.4, Place: sim.Hopping}},
	}
}
