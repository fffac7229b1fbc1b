package ledger_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// drawStored draws an account as anybody may have left it: by this limit, by a higher
// one, or by nonsense. What is lent may be all of it, and far above the burst.
func drawStored(t *rapid.T, r slice.Rule, leased bool) ledger.Account {
	most := rapid.SampledFrom([]float64{float64(r.Burst), 2 * float64(r.Burst), 1000 * float64(r.Burst)}).Draw(t, "most")
	a := ledger.Account{Stored: true, At: t0 + rapid.Int64Range(0, 3*slice.Epoch).Draw(t, "at")}
	if leased {
		lent := rapid.Int64Range(0, int64(most))
		a.Young, a.Old = float64(lent.Draw(t, "young")), float64(lent.Draw(t, "old"))
	}
	a.Used = a.Lent() + rapid.Float64Range(0.001, most).Draw(t, "spent")
	return a
}

func drawBucket(t *rapid.T) slice.Rule {
	burst := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1_000_000)).Draw(t, "burst")
	fill := rapid.OneOf(rapid.Int64Range(1_000, 600e6), rapid.Int64Range(1_000, 86_400e6)).Draw(t, "fill, µs")
	return slice.Rule{Burst: burst, Rate: float64(burst) / float64(fill)}
}

// After exactly RetryAfter, an account that nobody else uses admits, whatever is
// stored: at once if nothing is lent, and with leases at the latest when they are over
// and two bursts have drained.
func TestRetryAfterIsLongEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, leased := drawBucket(t), rapid.Bool().Draw(t, "leased")
		a := drawStored(t, r, leased)
		cost := rapid.Int64Range(1, r.Burst).Draw(t, "cost")
		clock := a.At + rapid.Int64Range(-slice.Epoch, slice.Epoch).Draw(t, "age")
		g, wrote := a.Settle(clock, r, need(cost))
		if g.Admitted[0] == 1 {
			t.Skip("admitted")
		}
		if wrote {
			t.Fatal("a refusal has written")
		}
		// What a higher limit used is a larger number than the caller knows of; the
		// rounding of that is all it can wait too little.
		rounding := int64(0)
		if a.Used > 2*float64(r.Burst) {
			rounding = int64(math.Ceil(a.Used * 0x1p-50 / r.Rate))
		}
		wait := slice.RetryAfter(r, g, cost).Microseconds() + rounding
		if most := g.Life + g.Now - g.Clock + int64(float64(r.Burst+cost)/r.Rate); g.Lent > 0 && wait < most {
			t.Skip("waits for slices to come back before they have to")
		}
		if g, _ := a.Settle(clock+wait, r, need(cost)); g.Admitted[0] != 1 {
			t.Fatalf("refused after %d µs: %+v", wait, g)
		}
	})
}

// Neither time is longer than the account would live if it were written.
func TestNoWaitIsLongerThanTheAccountLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawBucket(t)
		if rapid.Bool().Draw(t, "window") {
			r.Window = int64(float64(r.Burst) / r.Rate)
		}
		a := drawStored(t, r, rapid.Bool().Draw(t, "leased"))
		if rapid.IntRange(0, 9).Draw(t, "absurd") == 0 {
			a.Young, a.Used = 1e17, 2e17
		}
		clock := a.At + rapid.Int64Range(-slice.Epoch, 3*slice.Epoch).Draw(t, "age")
		before := a
		g, wrote := a.Settle(clock, r, slice.Usage{Charged: 1e-9})
		if !wrote || !a.Stored {
			t.Skip("nothing is stored")
		}
		life := time.Duration(a.TTL(clock, r, before, -1)) * time.Millisecond
		rounding := time.Duration((float64(r.Burst)*0x1p-48)/r.Rate)*time.Microsecond + time.Microsecond
		if retry := slice.RetryAfter(r, g, r.Burst); retry > life+rounding {
			t.Errorf("retry after %v, the account lives for %v: %+v", retry, life, g)
		}
		if reset := slice.ResetAfter(r, g); reset > life+rounding {
			t.Errorf("reset after %v, the account lives for %v: %+v", reset, life, g)
		}
	})
}

// 21 are lent of a burst that is 10 now, and 2 of them end a minute before the 19 others,
// which keep the account from draining: it is not just full when they end.
func TestRetryAfterWithLeasesOfTwoEpochs(t *testing.T) {
	low := slice.Rule{Burst: 10, Rate: 10 / 600e6}
	a := ledger.Account{Stored: true, At: t0 + 1e6, Used: 21, Young: 19, Old: 2}
	g, _ := a.Settle(a.At, low, need(1))
	wait := slice.RetryAfter(low, g, 1).Microseconds()
	if after, _ := a.Settle(a.At+wait, low, need(1)); after.Admitted[0] == 0 {
		t.Errorf("refused after %d s, %v are used", wait/1e6, after.Used)
	}
}
