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

// Tokens are there once: what a refund frees while a caller waits is not what the caller is
// about to use. Without the turn's lease, 9 would be admitted beside its 10 in one instant.
func TestARefundDoesNotDrainATurn(t *testing.T) {
	var a ledger.Account
	a.Settle(t0, ten, need(10))
	g, _ := a.Settle(t0, ten, waiting(10))
	if g.Admitted[0] != 1 || g.Used != 20 || g.Lent != 10 {
		t.Fatalf("the turn: %+v", g)
	}
	a.Settle(t0, ten, slice.Usage{Charged: -10})
	if g, _ := a.Settle(t0+900_000, ten, need(9)); g.Admitted[0] != 0 {
		t.Errorf("9 admitted 0.1 s before the turn of 10: %+v", g)
	}
	g, _ = a.Settle(t0+1_000_000, ten, slice.Usage{Tag: g.Tag, Spent: 10})
	if g.Used != 10 || g.Lent != 0 {
		t.Errorf("after the turn: %+v", g)
	}
}

// Beside what a higher limit used, a turn that fits is refused: as more than the burst is used, its
// node would take it for one that is lent.
func TestNoTurnBesideWhatAHigherLimitUsed(t *testing.T) {
	var a ledger.Account
	high, low := slice.Rule{Burst: 3, Rate: 3e-6}, slice.Rule{Burst: 1, Rate: 1.5e-6}
	a.Settle(t0, high, need(3))
	g, _ := a.Settle(t0+1_334_999, low, waiting(1))
	if g.Admitted[0] != 0 || g.Lent != 0 {
		t.Errorf("the turn: %+v", g)
	}
	if g, _ := a.Settle(t0+1_334_999, low, need(1)); g.Admitted[0] != 1 {
		t.Errorf("a request that does not wait: %+v", g)
	}
}

// The first in line leaves, and another stands behind it.
func TestAnAbandonedTurnDoesNotDrainTheNext(t *testing.T) {
	var a ledger.Account
	a.Settle(t0, twenty, need(20))
	first, _ := a.Settle(t0, twenty, waiting(10))
	second, _ := a.Settle(t0, twenty, waiting(10))
	if first.Admitted[0] != 1 || second.Admitted[0] != 1 || second.Lent != 20 {
		t.Fatalf("the turns: %+v, %+v", first, second)
	}
	goes := t0 + int64((second.Used-20)/twenty.Rate) + 1 // a second later, rounded up
	a.Settle(t0+1, twenty, slice.Usage{Tag: first.Tag, Returned: 10})
	g, _ := a.Settle(goes, twenty, need(11))
	if g.Admitted[0] != 0 || g.Lent != 10 {
		t.Errorf("11 of 20 admitted beside the turn of 10: %+v", g)
	}
	if g, _ = a.Settle(goes, twenty, need(10)); g.Admitted[0] != 1 {
		t.Errorf("10 of 20 refused beside the turn of 10: %+v", g)
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
