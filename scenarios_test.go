package hybrid

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestScenarios runs the rows of the targets table at reduced length: the bound
// and one operation per request are asserted, the costs are printed.
func TestScenarios(t *testing.T) {
	minute := PerMinute(1000)
	rows := []struct {
		name  string
		limit Limit
		where place
		load  float64
	}{
		{"uniform 1%", minute, uniform, 0.01},
		{"uniform 5%", minute, uniform, 0.05},
		{"uniform 50%", minute, uniform, 0.5},
		{"uniform 95%", minute, uniform, 0.95},
		{"uniform 140%", minute, uniform, 1.4},
		{"uniform 10x", minute, uniform, 10},
		{"one node 140%", minute, oneNode, 1.4},
		{"hopping 140%", minute, hopping, 1.4},
		{"adversarial 140%", minute, adversarial, 1.4},
		{"10k uniform 50%", PerMinute(10000), uniform, 0.5},
		{"10k uniform 140%", PerMinute(10000), uniform, 1.4},
		{"100/min uniform 50%", PerMinute(100), uniform, 0.5},
		{"100/min uniform 140%", PerMinute(100), uniform, 1.4},
		{"100/min hopping 10x", PerMinute(100), hopping, 10},
		{"5/min uniform 10x", PerMinute(5), uniform, 10},
		{"window 1000 uniform 140%", Window(1000, time.Minute), uniform, 1.4},
		{"window 1000 hopping 140%", Window(1000, time.Minute), hopping, 1.4},
	}
	for _, acc := range []Accuracy{Balanced, Strict} {
		for i, row := range rows {
			t.Run(fmt.Sprintf("%v/%s", acc, row.name), func(t *testing.T) {
				setup := fleetSetup{limit: row.limit, limiter: LimiterOptions{Accuracy: acc}}
				inBubble(t, setup, func(f *fleet) {
					rng := rand.New(rand.NewPCG(1, uint64(i)))
					rate := row.load * float64(row.limit.Count()) / row.limit.Period().Seconds()
					fill := time.Duration(float64(row.limit.Burst()) / float64(row.limit.Count()) * float64(row.limit.Period()))
					f.load(rng, rate, 5*time.Second+fill, row.where, 1)
					before, warm := f.stats(), f.count
					ideal := oracleOf(row.limit).Compare(f.requests["k"])
					f.load(rng, rate, 5*fill, row.where, 1)
					after := f.stats()
					n := float64(f.count - warm)
					out := oracleOf(row.limit).Compare(f.requests["k"])
					out.Admitted -= ideal.Admitted
					out.Ideal -= ideal.Ideal
					out.FalseDenials -= ideal.FalseDenials
					t.Logf("ops/request %.4f  blocked %.2f%%  admitted %.2f%%  false denials %d of %.0f",
						float64(after.Operations-before.Operations)/n,
						100*float64(after.Blocked-before.Blocked)/n,
						100*out.Ratio(), out.FalseDenials, n)
					f.checkBound(row.limit, acc.Over())
					f.checkCost()
				})
			})
		}
	}
}
