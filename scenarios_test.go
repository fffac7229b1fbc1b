package hybrid

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var fills = flag.Float64("fills", 1.5, "fill times that each of TestScenarios runs for; docs/accuracy.md has 15")

// scenario is a row of the targets table: one key, twenty nodes, and where
// which load comes.
type scenario struct {
	name  string
	limit Limit
	where place
	load  float64 // of the limit
	short bool    // also in Strict, and under the race detector
}

var scenarios = []scenario{
	{"1000/min, uniform, 1 %", PerMinute(1000), uniform, 0.01, false},
	{"1000/min, uniform, 5 %", PerMinute(1000), uniform, 0.05, false},
	{"1000/min, uniform, 50 %", PerMinute(1000), uniform, 0.5, true},
	{"1000/min, uniform, 95 %", PerMinute(1000), uniform, 0.95, false},
	{"1000/min, uniform, 140 %", PerMinute(1000), uniform, 1.4, true},
	{"1000/min, uniform, 10×", PerMinute(1000), uniform, 10, false},
	{"1000/min, one node, 140 %", PerMinute(1000), oneNode, 1.4, false},
	{"1000/min, hopping node, 140 %", PerMinute(1000), hopping, 1.4, true},
	{"1000/min, node with the least, 140 %", PerMinute(1000), adversarial, 1.4, true},
	{"10,000/min, uniform, 50 %", PerMinute(10000), uniform, 0.5, false},
	{"10,000/min, uniform, 140 %", PerMinute(10000), uniform, 1.4, false},
	{"100/min, uniform, 50 %", PerMinute(100), uniform, 0.5, false},
	{"100/min, uniform, 140 %", PerMinute(100), uniform, 1.4, false},
	{"100/min, hopping node, 10×", PerMinute(100), hopping, 10, false},
	{"5/min, uniform, 10×", PerMinute(5), uniform, 10, true},
	{"window of 1000/min, uniform, 140 %", Window(1000, time.Minute), uniform, 1.4, false},
	{"window of 1000/min, hopping node, 140 %", Window(1000, time.Minute), hopping, 1.4, true},
	{"1000/s, uniform, 140 %", PerSecond(1000), uniform, 1.4, false},
}

// TestScenarios asserts in each row that no interval holds more than the bound,
// that Redis executed no more operations than there were requests, and that the
// limit was used: no less than 90 % of what a perfect central limiter admits, in
// a run as short as this. It prints what each row cost.
func TestScenarios(t *testing.T) {
	for _, acc := range []Accuracy{Balanced, Strict} {
		for i, s := range scenarios {
			if !s.short && (raceDetector || acc == Strict) {
				continue
			}
			t.Run(fmt.Sprintf("%v/%s", acc, s.name), func(t *testing.T) { s.run(t, acc, uint64(i)) })
		}
	}
}

func (s scenario) run(t *testing.T, acc Accuracy, seed uint64) {
	setup := fleetSetup{limit: s.limit, limiter: LimiterOptions{Accuracy: acc}}
	inBubble(t, setup, func(f *fleet) {
		rng := rand.New(rand.NewPCG(1, seed))
		rate := s.load * float64(s.limit.Count()) / s.limit.Period().Seconds()
		fill := s.limit.Period()
		f.load(rng, rate, 5*time.Second+fill, s.where, 1) // floors are there now, and earned
		before, warm, early := f.stats(), f.count, oracleOf(s.limit).Compare(f.requests["k"])
		f.load(rng, rate, time.Duration(*fills*float64(fill)), s.where, 1)

		after, n := f.stats(), float64(f.count-warm)
		all := oracleOf(s.limit).Compare(f.requests["k"])
		admitted := float64(all.Admitted-early.Admitted) / float64(all.Ideal-early.Ideal)
		t.Logf("| %s | %v | %.4f | %.2f %% | %.1f %% | %.2f %% |", s.name, acc,
			float64(after.Operations-before.Operations)/n,
			100*float64(after.Blocked-before.Blocked)/n,
			100*admitted,
			100*float64(all.FalseDenials-early.FalseDenials)/n)
		if whole := all.Ratio(); whole < 0.9 {
			t.Errorf("admitted %.1f %% of what a perfect limiter admits", 100*whole)
		}
		f.checkBound(s.limit, acc.Over())
		f.checkCost()
	})
}
