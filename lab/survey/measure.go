package survey

import (
	"fmt"
	"testing"

	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// Measure makes a run and fills in its row. It is an error if the library broke a
// promise: that is no number to publish.
func (r Run) Measure(t *testing.T) (report.Row, error) {
	f := r.Experiment.Run(t)
	row := r.Row
	row.Figures = figuresOf(f)
	if err := f.Err(); err != nil && r.Experiment.Subject == nil {
		return row, fmt.Errorf("%s: %w", row.Command, err)
	}
	return row, nil
}

func figuresOf(f *sim.Figures) report.Figures {
	return report.Figures{
		Requests:     f.Requests,
		Operations:   f.Cost.Operations,
		Blocked:      f.Blocked,
		Delay:        f.Delay,
		Admitted:     f.Admitted,
		Ideal:        f.Ideal,
		FalseDenials: f.FalseDenials,
		Excess:       f.Excess,
		Within:       float64(f.Worst.Admitted) - f.Excess,
	}
}
