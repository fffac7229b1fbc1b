package sim

import (
	"fmt"
	"testing"
)

// TestFaultMix is fleets under load in which everything goes wrong that may:
// replies get lost before and after the store ran the call, nodes crash, leave,
// join and stand still, links break or swallow everything, the store loses its
// data. Whatever happens, the promise holds and no request costs more than one
// operation. `go run ./lab faults` runs as many more as one likes.
func TestFaultMix(t *testing.T) {
	seeds := uint64(30)
	if raceDetector {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			e := Mix(seed)
			if seed%5 == 4 {
				e.Store = Mini // with the script itself, and connections that break
			}
			f := e.Run(t)
			t.Log(f.Brief())
			if err := f.Err(); err != nil {
				t.Errorf("%v\nagain: %s", err, f.Command())
			}
		})
	}
}
