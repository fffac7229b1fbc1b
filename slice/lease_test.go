package slice

import (
	"testing"

	"pgregory.net/rapid"
)

// However takes, settles, replies, losses, refunds and ends of leases follow
// one another, the cell and the lease agree with a naive ledger.
func TestTheLedgerAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sim
		if err := s.stepAll(rapid.SliceOfN(rapid.Byte(), 20, 600).Draw(t, "ops")); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzCell is the same for the fuzzer.
func FuzzCell(f *testing.F) {
	f.Add([]byte{5, 200, 6, 0, 0, 160, 3, 0, 9, 1, 5, 100, 6, 0, 1, 16})                // a lost return
	f.Add([]byte{5, 200, 6, 0, 0, 160, 4, 100, 9, 0, 0, 30, 3, 0, 6, 0})                // a lost renewal
	f.Add([]byte{5, 200, 6, 0, 4, 60, 0, 99, 8, 0, 10, 64, 5, 9, 6, 255})               // not run, refund, dropped
	f.Add([]byte{5, 255, 6, 0, 4, 255, 11, 200, 11, 200, 11, 200, 11, 200, 6, 0, 0, 0}) // the lease ends in flight
	f.Fuzz(func(t *testing.T, ops []byte) {
		var s sim
		if err := s.stepAll(ops); err != nil {
			t.Fatal(err)
		}
	})
}

// granted returns a cell and lease with so many tokens.
func granted(tokens int64) (*Cell, *Lease) {
	c, l := new(Cell), new(Lease)
	l.Report(c, 0)
	l.Ran(c, Grant{Granted: tokens, Tag: Tag{Epoch: 1}}, 100)
	return c, l
}

func TestReturnsLeaveBeforeTheyAreSent(t *testing.T) {
	var dead Watermark
	c, l := granted(100)
	c.Take(30, &dead)
	u := l.Report(c, 20)
	if u.Spent != 30 || u.Returned != 50 || u.Held != 20 || (u.Tag != Tag{Epoch: 1}) {
		t.Errorf("reported %+v", u)
	}
	if _, ok := c.Take(21, &dead); ok {
		t.Error("tokens that were offered for return were spent")
	}
	c.Take(5, &dead)
	l.Ran(c, Grant{Granted: 10, Tag: Tag{Epoch: 2}}, 200)
	if u := l.Report(c, 0); u.Spent != 5 || u.Returned != 25 || (u.Tag != Tag{Epoch: 2}) {
		t.Errorf("then reported %+v", u)
	}
}

func TestALeaseInDoubtIsUsedUpAndNotReported(t *testing.T) {
	var dead Watermark
	c, l := granted(100)
	l.Report(c, 100)
	l.Lost()
	if !l.InDoubt() || c.Alive(&dead) != 100 {
		t.Error("a lost renewal takes the slice away")
	}
	c.Take(10, &dead)
	if u := l.Report(c, 0); u.Tag != (Tag{}) || u.Spent+u.Returned+u.Held != 0 {
		t.Errorf("spoke of it: %+v", u)
	}
	l.Ran(c, Grant{}, 300)
	if c.Alive(&dead) != 90 {
		t.Error("a settle of needs changed the slice")
	}
	dead.Pass(100)
	if c.Alive(&dead) != 0 {
		t.Error("outlived its old lease")
	}
}

func TestALostReturnEndsTheLease(t *testing.T) {
	c, l := granted(100)
	l.Report(c, 0)
	l.Lost()
	if l.Holds() || l.InDoubt() || c.Tokens() != 0 {
		t.Error("something is left of it")
	}
}

func TestADroppedLeaseTakesItsSpendingWithIt(t *testing.T) {
	var dead Watermark
	c, l := granted(100)
	l.Report(c, 60)
	c.Take(10, &dead)
	if lost, spent := l.Ran(c, Grant{Dropped: true, Granted: 7, Tag: Tag{Epoch: 9}}, 200); lost != 50 || spent != 10 {
		t.Errorf("%d tokens lost and %d spent, want 50 and 10", lost, spent)
	}
	if c.Alive(&dead) != 7 || l.Unreported(c) != 0 {
		t.Errorf("%d tokens, %d unreported", c.Alive(&dead), l.Unreported(c))
	}
	l.Report(c, 5)
	if lost, spent := l.Ran(c, Grant{Dropped: true, Tag: Tag{Epoch: 9}}, 300); lost != 5 || spent != 0 {
		t.Errorf("%d tokens lost and %d spent, want 5 and 0", lost, spent)
	}
	if l.Holds() || c.Tokens() != 0 {
		t.Error("a lease without tokens goes on")
	}
}

func TestARefundNeedsSpendingOfThisLease(t *testing.T) {
	var dead Watermark
	c, l := granted(10)
	c.Take(4, &dead)
	if l.Return(c, 5, &dead) || !l.Return(c, 4, &dead) || l.Return(c, 1, &dead) {
		t.Error("gave back what was not spent")
	}
	c.Take(4, &dead)
	dead.Pass(100)
	if l.Return(c, 4, &dead) || new(Lease).Return(new(Cell), 1, &dead) {
		t.Error("gave back to a lease that is over")
	}
}

// A store that grants more than was asked must not spill into the expiry.
func TestAGrantBeyondTheCellIsCut(t *testing.T) {
	var dead Watermark
	c, l := granted(MaxSlice - 5)
	l.Report(c, MaxSlice)
	l.Ran(c, Grant{Granted: 100, Tag: Tag{Epoch: 2}}, 50)
	if c.Tokens() != MaxSlice || l.Unreported(c) != 0 {
		t.Errorf("%d tokens, %d unreported", c.Tokens(), l.Unreported(c))
	}
	dead.Pass(50)
	if c.Alive(&dead) != 0 {
		t.Error("the expiry was changed")
	}
}
