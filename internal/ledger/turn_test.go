package ledger_test

import (
	"testing"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

var (
	twenty  = slice.Rule{Burst: 20, Rate: 20e-6} // 20/s
	ten     = slice.Rule{Burst: 10, Rate: 10e-6}
	waiting = func(cost int64) slice.Usage { return slice.Usage{Needs: []slice.Need{{Cost: cost}}} }
)

// Node b holds a slice of 20 when node a's WaitN(15) is reserved.
func TestATurnNeedsRoomBesideSlices(t *testing.T) {
	var a ledger.Account
	a.Settle(t0, twenty, wish(20))
	g, _ := a.Settle(t0, twenty, waiting(15))
	wait := int64((g.Used - 20) / twenty.Rate)
	g2, _ := a.Settle(t0+wait, twenty, slice.Usage{})
	if at := 15 + g2.Lent; g.Admitted[0] == 1 && at > 20 {
		t.Errorf("the turn comes after %d µs, with %d in live slices: %d may go in one instant, allowed 20", wait, g2.Lent, at)
	}
}

// A limit that was lowered: what the higher one used is held as just full, and so is what is reserved.
func TestALoweredLimitGivesOneTurnAtMost(t *testing.T) {
	var a ledger.Account
	a.Settle(t0, slice.Rule{Burst: 1000, Rate: 1e-3}, need(500))
	turns := 0
	for range 20 {
		g, _ := a.Settle(t0, ten, waiting(10))
		if g.Admitted[0] == 1 && g.Used <= 20 {
			turns++
		}
	}
	if turns > 1 {
		t.Errorf("%d callers of 10 are told the same second as their turn, allowed 10 tokens", turns)
	}
}

// What was undone in a window that is not named goes back into any.
func TestAReturnOfNoWindowGoesNowhere(t *testing.T) {
	w := slice.Rule{Burst: 10, Rate: 1e-6, Window: 10e6}
	var a ledger.Account
	a.Settle(t0, w, need(10))
	a.Settle(t0+11e6, w, need(10))
	if g, _ := a.Settle(t0+11e6, w, slice.Usage{Return: 10, ReturnAt: t0}); g.Used != 10 {
		t.Errorf("%v used of 10 after a return of what another window admitted", g.Used)
	}
}
