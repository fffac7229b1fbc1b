package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// TestFaultMix is fleets under load in which everything goes wrong that may:
// replies get lost before and after the store ran the call, nodes crash, leave,
// join and stand still, links break or swallow everything, the store loses its
// data. Whatever happens, the promise holds and no request costs more than one
// operation. `go run ./lab faults` runs as many more as one likes.
func TestFaultMix(t *testing.T) {
	seeds := []uint64{84, 127} // have found something
	for seed := range uint64(30) {
		if seed < 8 || !raceDetector {
			seeds = append(seeds, seed)
		}
	}
	for _, seed := range seeds {
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

// TestSilence is leases that end while nobody asks and a node hears nothing of the
// store: when a crowd comes, the node must not spend what has gone back.
func TestSilence(t *testing.T) {
	e := Experiment{Limit: hybrid.PerMinute(100), Accuracy: hybrid.Strict, OnFailure: hybrid.FailClosed,
		Nodes: 2, Quiet: true, Warm: findEachOther, Span: 400 * time.Second,
		Scenes: Scenes{
			{For: 20 * time.Second, Load: 0.5},
			{For: 110 * time.Second},
			{For: 5 * time.Second, Load: 40},
			{For: time.Hour},
		},
		Faults: Faults{{At: 25 * time.Second, Kind: Hole}},
	}
	for seed := range uint64(5) {
		e.Seed = seed
		if f := e.Run(t); f.Err() != nil {
			t.Errorf("%v\nagain: %s", f.Err(), f.Command())
		}
	}
}
