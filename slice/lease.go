package slice

// Lease is a node's side of the ledger for one cell: which lease its tokens
// belong to, and what the store has yet to be told of them. A settle is
// prepared by Report and ended by exactly one of Ran, NotRun and Lost.
//
// The caller holds the account's lock in every method; only Takes on the cell
// run at the same time. At most one settle is in flight: between Report and its
// end no method but Return may be called.
//
// Ledger invariant: base − (tokens in the cell) is what was spent and not yet
// reported, and is never negative.
type Lease struct {
	tag     Tag
	base    uint32 // tokens in the cell if nothing had been spent since the last report
	sent    report
	inDoubt bool // the outcome of a settle is unknown: use up what is here, say nothing of it
}

// report is what the settle in flight says of the slice. Every number is at
// most MaxSlice, and there is one for every key: hence the width.
type report struct {
	spent, returned, held uint32 // tokens
	made                  bool   // a lease was spoken of
}

// Holds reports whether there is a lease to report, renew or return.
func (l *Lease) Holds() bool { return l.tag != Tag{} }

// Window returns the number of the fixed window that the lease belongs to, 0 for a
// token bucket and where there is no lease.
func (l *Lease) Window() int64 { return l.tag.Window }

// InDoubt reports whether a settle's outcome was lost: until the lease ends
// settles carry only needs.
func (l *Lease) InDoubt() bool { return l.inDoubt }

// Unreported returns the tokens spent since the last report.
func (l *Lease) Unreported(c *Cell) int64 { return int64(l.base) - c.Tokens() }

// Report starts a settle: it says what was spent, keeps at most keep tokens in
// the cell for renewal and takes the others out of it for return.
//
// The returned tokens leave the cell before the call is sent. Were they left
// there until the reply, they could be spent here and granted elsewhere.
func (l *Lease) Report(c *Cell, keep int64) Usage {
	l.sent = report{}
	if l.inDoubt || !l.Holds() {
		return Usage{}
	}
	before := c.withhold(keep)
	held := min(before, keep)
	spent, returned := int64(l.base)-before, before-held
	l.sent = report{spent: uint32(spent), returned: uint32(returned), held: uint32(held), made: true}
	l.base = uint32(held)
	return Usage{Tag: l.tag, Spent: spent, Returned: returned, Held: held}
}

// Ran ends a settle that the store executed. The expiry is the local tick at
// which the lease of the grant ends, guard included. If the store had dropped the
// slice, it returns the tokens that left the cell for it, and those that were spent
// since the report.
func (l *Lease) Ran(c *Cell, g Grant, expiry Tick) (lost, spent int64) {
	if l.inDoubt {
		return 0, 0 // only needs were sent, nothing was granted
	}
	if g.Dropped {
		lost, spent = l.empty(c)
		l.base = 0
		l.sent.held = 0
	}
	if l.sent.held == 0 && g.Granted == 0 {
		c.clear()
		*l = Lease{}
		return lost, spent
	}
	fits := min(g.Granted, MaxSlice-int64(l.base)) // more would spill into the expiry; nobody asks for more
	l.base += uint32(fits)
	l.tag = g.Tag
	c.renew(expiry, fits)
	return lost, spent
}

// NotRun ends a settle that was certainly not executed: the numbers come back.
func (l *Lease) NotRun(c *Cell) {
	c.add(int64(l.sent.returned))
	l.base += l.sent.spent + l.sent.returned
	l.sent = report{}
}

// Lost ends a settle whose outcome is unknown. Tokens that it held for renewal
// belong to the old lease or to a new one, nobody can say which: the slice is
// marked and never spoken of again. It stays usable until its old expiry, which
// both leases cover. A settle that held nothing leaves nothing to be in doubt:
// whenever it runs, it takes out of the ledger just what this node no longer has.
func (l *Lease) Lost() {
	switch {
	case l.inDoubt || !l.sent.made:
	case l.sent.held > 0:
		l.inDoubt = true
	default:
		*l = Lease{}
	}
}

// Lapse gives the lease up without telling the store, which forgets it by
// itself at the end of the next epoch. It returns the tokens that were left, and
// those that were spent since the last report.
func (l *Lease) Lapse(c *Cell) (lost, spent int64) {
	lost, spent = l.empty(c)
	*l = Lease{}
	return lost, spent
}

// empty takes all tokens out of the cell, and tells them from those that were spent:
// in one step, as requests go on taking.
func (l *Lease) empty(c *Cell) (left, spent int64) {
	left = c.clear()
	return left, int64(l.base) - left
}

// Return puts n spent tokens back into the cell, if so many were spent and
// not reported and the lease still lives. It may be called at any time.
func (l *Lease) Return(c *Cell, n int64, dead *Watermark) bool {
	if !l.Holds() || c.Expired(dead) || l.Unreported(c) < n {
		return false
	}
	c.add(n)
	return true
}
