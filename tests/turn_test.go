package tests_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// Nodes hold slices while another waits for its turn, and use them when it comes.
// Strict promises B + r·t in every interval.
func TestATurnBesideSlicesKeepsTheBound(t *testing.T) {
	worst, best := 0.0, ""
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limit := int64([]int{20, 50, 100, 1000}[rnd.IntN(4)])
		period := []time.Duration{time.Second, 2 * time.Second, 10 * time.Second}[rnd.IntN(3)]
		cost := limit/2 + rnd.Int64N(limit/2) + 1
		load := 0.3 + 0.9*rnd.Float64()
		every := time.Duration(float64(period) / float64(limit) / load)
		pause := time.Duration(rnd.Int64N(int64(period / 4)))
		story(t, func(w *world) {
			a, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
			opts := hybrid.LimiterOptions{Accuracy: hybrid.Strict}
			la, lb := a.limiter("api", hybrid.Per(limit, period), opts), b.limiter("api", hybrid.Per(limit, period), opts)
			var mu sync.Mutex
			var seen []oracle.Admission
			admitted := func(cost int64) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, oracle.Admission{At: time.Now().UnixNano(), Cost: cost})
			}
			for range 3 * limit {
				if allow(t, lb, "k", 1).Allowed {
					admitted(1)
				}
				time.Sleep(every)
			}
			time.Sleep(pause)
			if err := la.WaitN(ctx, "k", cost); err != nil {
				t.Error(err)
			}
			admitted(cost)
			for range 2 * limit {
				if r := allow(t, lb, "k", 1); !r.Allowed {
					break
				}
				admitted(1)
			}
			if r := oracle.New(limit, period, limit).Check(seen); r.Excess/float64(limit) > worst {
				worst, best = r.Excess/float64(limit), r.String()
			}
		})
	}
	if worst > 0.01 {
		t.Errorf("%.0f %% of the burst beyond the bound: %s", 100*worst, best)
	}
}
