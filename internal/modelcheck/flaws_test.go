package modelcheck

import (
	"strings"
	"testing"
)

// flawed is a world in which a rule's absence is found.
type flawed struct {
	flaw    Flaw
	found   string // the invariant that is broken first
	steps   int    // by how many that is
	promise int    // by how many the promise itself is broken; 0 = it is not looked for, or kept
	Setup
}

// halves asks for slices that are too small for the costs.
func halves() Setup {
	s := small(2, 2, 30, 0.5)
	s.Asks[1].Want = 1
	return s
}

var flawedWorlds = []flawed{
	{TagIgnored, "once", 7, 17, small(2, 2, 30, 0.5)},
	{DropFirst, "charged", 9, 11, small(2, 2, 30, 0.5)},
	{UncoveredFree, "charged", 7, 0, small(2, 2, 30, 0.5).with(Faults{Losses: 1})},
	{UncoveredIgnored, "charged", 7, 14, small(2, 2, 30, 0.5).with(Faults{Losses: 1})},
	{ShortTTL, "ttl", 2, 12, small(2, 2, 30, 0.5)},
	{LowerTTL, "ttl", 6, 17, small(1, 4, 30, 0.5).changing(1, 1).asking(Ask{Needs: needs(1)})},
	{KeptTTL, "ttl", 8, 19, small(1, 4, 30, 0.5).changing(1, 1).asking(Ask{Needs: needs(1)})},
	{UncoveredRenewed, "promise", 15, 0, small(2, 2, 60, 1).with(Faults{Losses: 1})},
	{AheadStands, "asks", 3, 0, small(1, 2, 30, 0.5).jumping(-600)},
	{AheadUnwritten, "asks", 3, 0, small(1, 2, 30, 0.5).jumping(-600)},
	{ClockFollowed, "lent >= held", 15, 0, small(2, 2, 30, 0.5).jumping(-30)},
	{ReturnsLate, "lent >= held", 4, 6, small(2, 2, 30, 0.5)},
	{UnknownNotRun, "lent >= held", 5, 7, small(2, 2, 30, 0.5).with(Faults{Lost: 1})},
	{UnknownRan, "once", 8, 16, small(2, 2, 30, 0.5).with(Faults{Lost: 1})},
	{Unmarked, "once", 8, 0, small(2, 2, 30, 0.5).with(Faults{Lost: 1})},
	{LifeFromReply, "lent >= held", 7, 13, small(1, 2, 30, 0.5).waiting(60).asking(Ask{Needs: needs(1)})},
	{Unguarded, "lent >= held", 5, 10, small(2, 2, 60, 60).passing(1).asking(Ask{Needs: needs(1)})},
	{Resent, "lent >= held", 6, 14, small(2, 2, 30, 0.5).with(Faults{Resends: 1})},
	{RefusalGrants, "asks", 2, 0, halves()},
	{NeedKeeps, "asks", 1, 0, halves()},
	{ChargeLost, "known", 3, 0, small(2, 2, 30, 0.5).with(Faults{Lost: 1, Charges: 2})},
	{RefundTwice, "promise", 8, 8, small(2, 2, 30, 0.5).with(Faults{Refunds: 1})},
	{RefundFree, "lent >= held", 4, 7, small(2, 2, 30, 0.5).with(Faults{Refunds: 1})},
	{TurnUnlent, "lent >= held", 4, 11, small(2, 2, 30, 2).costing(2).asking(turn(2)).with(Faults{Refunds: 1})},
	{TurnBesideSlices, "promise", 10, 10, small(2, 2, 30, 2).asking(turn(2))},
	{TurnAtOnce, "promise", 6, 6, small(2, 2, 30, 0.5).asking(turn(2))},
	{TurnOutlivesLease, "promise", 12, 12, small(2, 2, 60, 2).asking(turn(2))},
	{TurnInDoubt, "once", 8, 0, small(2, 2, 60, 0.5).asking(turn(2)).with(Faults{Lost: 1})},
}

// In a window nothing drains, and what is admitted twice shows sooner.
var flawedWindows = []flawed{
	{TagIgnored, "once", 6, 10, small(2, 2, 30, 0.5).windowed(90)},
	{UncoveredFree, "charged", 7, 0, small(2, 2, 30, 0.5).with(Faults{Losses: 1}).windowed(90)},
	{UncoveredIgnored, "charged", 7, 0, small(2, 2, 30, 0.5).with(Faults{Losses: 1}).windowed(90)},
	{UncoveredRenewed, "promise", 15, 0, small(2, 2, 60, 1).with(Faults{Losses: 1}).windowed(300)},
	{AheadStands, "asks", 3, 0, small(1, 2, 30, 0.5).jumping(-600).windowed(90)},
	{AheadUnwritten, "asks", 3, 0, small(1, 2, 30, 0.5).jumping(-600).windowed(90)},
	{ReturnsLate, "lent >= held", 4, 6, small(2, 2, 30, 0.5).windowed(90)},
	{UnknownNotRun, "lent >= held", 5, 7, small(2, 2, 30, 0.5).with(Faults{Lost: 1}).windowed(90)},
	{UnknownRan, "lent >= held", 6, 9, small(2, 2, 30, 0.5).with(Faults{Lost: 1}).windowed(90)},
	{Unmarked, "once", 8, 0, small(2, 2, 30, 0.5).with(Faults{Lost: 1}).windowed(90)},
	{LifeFromReply, "lent >= held", 3, 7, small(2, 2, 30, 0.5).windowed(90)},
	{Unguarded, "lent >= held", 4, 7, small(2, 2, 30, 0.5).windowed(90)},
	{Resent, "lent >= held", 6, 14, small(2, 2, 30, 0.5).with(Faults{Resends: 1}).windowed(90)},
	{RefusalGrants, "asks", 2, 0, halves().windowed(90)},
	{NeedKeeps, "asks", 1, 0, halves().windowed(90)},
	{ChargeLost, "known", 3, 0, small(2, 2, 30, 0.5).with(Faults{Lost: 1, Charges: 2}).windowed(90)},
	{RefundTwice, "promise", 8, 8, small(2, 2, 30, 0.5).with(Faults{Refunds: 1}).windowed(90)},
	{RefundFree, "lent >= held", 4, 7, small(2, 2, 30, 0.5).with(Faults{Refunds: 1}).windowed(90)},
}

// Each rule's absence is found, and with the rule nothing is in the same world.
func TestEachRuleIsNeeded(t *testing.T) {
	for _, f := range flawedWorlds {
		t.Run("bucket/"+f.flaw.String(), f.isFound)
	}
	for _, f := range flawedWindows {
		t.Run("window/"+f.flaw.String(), f.isFound)
	}
}

func (f flawed) isFound(t *testing.T) {
	t.Parallel()
	f.Flaw = f.flaw
	if r := f.search(t, "", f.steps); !strings.HasPrefix(r.Broken, f.found+":") || r.Depth != f.steps {
		t.Errorf("broken after %d steps is %q, want %q after %d", r.Depth, r.Broken, f.found, f.steps)
	}
	if raceDetector {
		return // what follows takes long
	}
	if f.promise > 0 {
		if r := f.search(t, "promise", f.promise); r.Broken == "" || r.Depth != f.promise {
			t.Errorf("after %d steps %q, want a broken promise after %d", r.Depth, r.Broken, f.promise)
		}
	}
	f.Flaw = Sound
	if r := f.search(t, "", min(max(f.steps, f.promise), 12)); r.Broken != "" {
		t.Errorf("with the rule: %s", r.Broken)
	}
}

// search searches for a break of one or any invariant.
func (f *flawed) search(t *testing.T, only string, depth int) Report {
	s := &Search{Machine: NewMachine(f.Setup), Depth: depth, Only: only}
	if f.found == "asks" {
		s.Live = 1
	}
	r := search(t, s)
	if r.Broken != "" {
		retell(t, s.Machine, r)
	}
	return r
}

// Two rules keep the ledger true, and the promise would be kept without them.
//
// What no lease covers: a report that is not charged does not lower used − held,
// of which the promise is made, and what the node still holds is lent anew. So
// when the leases of before a fault are over, used ≥ lent ≥ held again. Charged,
// what was spent after the fault is paid for later.
//
// The mark: a lease in doubt is covered in the epoch that its node believes or in
// a later one. Reported by the earlier one it takes the cover of others, which are
// then covered by its own, for longer than they live. But it is charged again.
func TestTwoRulesAreTheLedgersAlone(t *testing.T) {
	b := int64(1)
	if *depthFlag != 0 {
		b = 2
	}
	for flaw, f := range map[Flaw]Faults{UncoveredFree: {Losses: 1}, Unmarked: {Lost: 1}} {
		setup := small(2, b, 60, 1).with(f)
		setup.Flaw = flaw
		for _, s := range []Setup{setup, setup.windowed(90)} {
			r := search(t, &Search{Machine: NewMachine(s), Only: "promise"})
			if r.Broken != "" || !r.Closed {
				t.Errorf("%s: %q, closed %t", flaw, r.Broken, r.Closed)
			}
		}
	}
}
