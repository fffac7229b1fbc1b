package survey

import (
	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// scenarios are the rows that have targets, each in both usual settings.
func scenarios() (runs []Run) {
	for _, r := range sim.Rows() {
		r.Experiment.Seed = 1
		for _, a := range []hybrid.Accuracy{hybrid.Balanced, hybrid.Strict} {
			runs = append(runs, library(a).run(report.Scenarios, 0, r.Name, r.Experiment))
		}
	}
	return runs
}
