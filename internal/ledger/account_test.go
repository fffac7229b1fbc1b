package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// That an account is what the script makes of it is shown in package exact,
// which runs both side by side, on the embedded and on a real server.

func wish(n int64) slice.Usage { return slice.Usage{Want: n, Least: 1, Unit: 1, Divisor: 1} }

func need(cost int64) slice.Usage {
	return slice.Usage{Needs: []slice.Need{{Cost: cost, Count: 1}}}
}

// Equal accounts are one key of a map, and what changes nothing changes no bit.
func TestARefusalLeavesTheAccount(t *testing.T) {
	rule := slice.Rule{Burst: 10, Rate: 0.3e-6}
	var a ledger.Account
	a.Settle(t0, rule, need(10))
	before := a
	for i := range int64(1000) {
		if g, wrote := a.Settle(t0+i, rule, need(1)); wrote || g.Admitted[0] != 0 {
			t.Fatalf("%+v", g)
		}
	}
	if a != before {
		t.Errorf("%+v became %+v", before, a)
	}
	a.Settle(t0, rule, slice.Usage{Charged: -10})
	if a != (ledger.Account{}) {
		t.Errorf("an empty account is not stored: %+v", a)
	}
}

// A lease counts to the end of the epoch after its own, renewed or not.
func TestALeaseAges(t *testing.T) {
	rule := slice.Rule{Burst: 100, Rate: 1e-6}
	var a ledger.Account
	a.Settle(t0+50e6, rule, wish(90))
	for _, c := range []struct {
		at   int64 // s
		lent float64
	}{{60, 90}, {119, 90}, {120, 0}, {500, 0}} {
		b := a
		b.Settle(t0+c.at*1e6, rule, slice.Usage{Charged: 1})
		if b.Lent() != c.lent {
			t.Errorf("after %d s %v are lent, want %v", c.at, b.Lent(), c.lent)
		}
	}
}

func TestTextIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lent := rapid.Int64Range(0, 1<<53)
		a := ledger.Account{Stored: true, At: rapid.Int64Range(0, 1<<52).Draw(t, "at"),
			Young: float64(lent.Draw(t, "young")), Old: float64(lent.Draw(t, "old"))}
		a.Used = a.Lent() + rapid.Float64Range(0, 1e17).Draw(t, "used")
		if b := ledger.Parse(a.Text()); b != a {
			t.Fatalf("%+v, as %q, is read as %+v", a, a.Text(), b)
		}
	})
}

func TestWhatIsNotStoredHasNoText(t *testing.T) {
	damaged := ledger.Parse("1 2 3")
	if !damaged.Damaged || !damaged.Stored || damaged.Text() != "" {
		t.Errorf("%+v", damaged)
	}
	if a := (&ledger.Account{}); a.Text() != "" {
		t.Errorf("%q", a.Text())
	}
}

// Only the answers to needs are allocated.
func TestASettleDoesNotAllocate(t *testing.T) {
	rule := slice.Rule{Burst: 1000, Rate: 1e-3}
	var a ledger.Account
	clock := int64(t0)
	for usage, want := range map[*slice.Usage]float64{
		{Charged: 0.5}: 0,
		{Tag: slice.Tag{Epoch: t0 / slice.Epoch}, Spent: 1, Held: 1, Want: 5, Least: 1, Unit: 1, Divisor: 2}: 0,
		{Needs: []slice.Need{{Cost: 1, Count: 1}}}:                                                           1,
	} {
		got := testing.AllocsPerRun(100, func() {
			clock += 100
			a.Settle(clock, rule, *usage)
		})
		if got != want {
			t.Errorf("%+v: %v allocations, want %v", *usage, got, want)
		}
	}
}
