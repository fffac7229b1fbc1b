package baseline

import (
	"testing"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// The lab runs every scheme, and the same seed gives the same figures.
func TestSchemesInTheLab(t *testing.T) {
	for _, k := range All() {
		e := sim.Experiment{Limit: hybrid.PerSecond(100), Load: 1.4, Place: sim.Hopping, Fills: 20, Subject: k.Start}
		a, b := e.Run(t), e.Run(t)
		if a.Requests == 0 || a.Admitted != b.Admitted || a.Cost != b.Cost || a.Excess != b.Excess || a.Delay != b.Delay {
			t.Errorf("%v: %+v, then %+v", k, a, b)
		}
	}
}
