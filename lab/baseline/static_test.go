package baseline

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// All load on one node of 20 gets a twentieth of the limit.
func TestStaticOnOneNode(t *testing.T) {
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(1000), hybrid.Window(1000, time.Second)} {
		inBubble(t, Static, 20, limit, func(r *run) {
			r.load(seeded(), 1400, 20*time.Second, func(time.Duration) int { return 0 })
			o := r.limit.Compare(r.requests)
			near(t, limit.String(), o.Ratio(), 1.0/20)
			if c := r.Cost(); c != (sim.Cost{}) {
				t.Errorf("it cost %+v", c)
			}
		})
	}
}

// Spread evenly it keeps the limit, if every node can have its share.
func TestStaticKeepsALimitThatCanBeShared(t *testing.T) {
	inBubble(t, Static, 20, hybrid.PerSecond(1000), func(r *run) {
		r.uniform(seeded(), 1400, 10*time.Second, 20)
		if err := r.report().Err(); err != nil {
			t.Error(err)
		}
	})
}

// With a burst of 5 on 20 nodes, each holds a token: 20 pass at once. The rate
// still holds; in a window, 20 pass each time.
func TestStaticBelowOneTokenPerNode(t *testing.T) {
	for _, limit := range []hybrid.Limit{hybrid.PerMinute(5), hybrid.Window(5, time.Minute)} {
		inBubble(t, Static, 20, limit, func(r *run) {
			for node := range 20 {
				r.burst(node, 3)
			}
			if got := r.report(); got.Total != 20 || got.Excess != 15 {
				t.Errorf("%v: %+v", limit, got)
			}
		})
	}
}
