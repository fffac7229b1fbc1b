package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// Under a limit that was lowered while much was lent, a cost is admitted after exactly
// the time that its caller was given, and that is never beyond the leases and a fill time.
func TestRetryAfterOfALoweredLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		high := slice.Rule{Burst: rapid.Int64Range(1000, 1<<40).Draw(t, "burst before"), Rate: 1}
		low := slice.Rule{Burst: rapid.Int64Range(1, 400).Draw(t, "burst")}
		low.Rate = float64(low.Burst) / float64(rapid.Int64Range(1e6, 600e6).Draw(t, "period"))
		clock := rapid.Int64Range(1e12, 1e12+3*slice.Epoch).Draw(t, "clock")
		var a ledger.Account
		want := rapid.Int64Range(1, high.Burst).Draw(t, "lent")
		a.Settle(clock, high, slice.Usage{Want: want, Least: 1, Unit: 1, Divisor: 1})
		clock += rapid.Int64Range(0, slice.Epoch).Draw(t, "passed")
		cost := rapid.Int64Range(1, low.Burst).Draw(t, "cost")
		ask := slice.Usage{Needs: []slice.Need{{Cost: cost, Count: 1}}}
		g, _ := a.Settle(clock, low, ask)
		if g.Admitted[0] == 1 {
			return
		}
		wait := slice.RetryAfter(low, g, cost).Microseconds()
		if most := 2*slice.Epoch + int64(float64(2*low.Burst)/low.Rate) + 2; wait > most {
			t.Fatalf("%d µs, at most %d", wait, most)
		}
		if g.Lent > 2*low.Burst || g.Lent == 0 { // else idle nodes are expected to return what they hold
			if g, _ := a.Settle(clock+wait, low, ask); g.Admitted[0] != 1 {
				t.Fatalf("refused after %d µs: %+v, account %+v", wait, g, a)
			}
		}
	})
}
