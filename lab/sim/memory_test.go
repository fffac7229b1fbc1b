package sim

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Callers that give up on a silent link do so in the same order in every run.
func TestSameSeedWithAHole(t *testing.T) {
	e := Experiment{Limit: hybrid.PerSecond(100), Nodes: 4, Load: 1.4, Fills: 20,
		Faults: Faults{{At: 8 * time.Second, Kind: Hole}, {At: 18 * time.Second, Kind: Mend}}}
	first := e.Run(t)
	for range 3 {
		same(t, first, e.Run(t), 0)
	}
}
