package sim

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// What a fleet asks the store for follows from the load: far below a limit nothing,
// below it refills, far above it the pace.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		load float64
		most Reason
	}{{0.5, Refilled}, {10, Paced}} {
		f := Experiment{Limit: hybrid.PerSecond(1000), Load: c.load, Warm: 8 * time.Second, Span: 5 * time.Second, Seed: 1}.Run(t)
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, n := range f.Cost.By {
			sum += n
		}
		if sum != f.Cost.Operations || 2*f.Cost.By[c.most] < sum {
			t.Errorf("load %g: %d operations: %v; want most of them %v", c.load, f.Cost.Operations, f.Cost.By, c.most)
		}
	}
}
