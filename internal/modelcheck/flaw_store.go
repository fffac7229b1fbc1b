package modelcheck

import (
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// The rules of the store, any of which can be left out. The node's are in node.go,
// where the node does what they are about.

// ttl is how long a key lives that is written now.
func (m *Machine) ttl(a *ledger.Account, clock int64, r slice.Rule, before ledger.Account, left int64) int64 {
	switch m.Flaw {
	case ShortTTL:
		b := *a
		b.Used, b.Young, b.Old = a.Used, 0, 0
		return b.TTL(clock, r, before, left)
	case LowerTTL:
		left = -1
	case KeptTTL:
		own := a.TTL(clock, r, before, -1)
		if a.Used > float64(r.Burst) {
			return max(own, left)
		}
		return own
	}
	return a.TTL(clock, r, before, left)
}

// settle is the account's, with a rule left out.
func (m *Machine) settle(a *ledger.Account, clock int64, r slice.Rule, u slice.Usage) (slice.Grant, bool) {
	b := *a
	switch m.Flaw {
	case ClockFollowed:
		b.At = min(b.At, clock)
	case DropFirst:
		b = dropFirst(b, max(clock, b.At), r)
	case TagIgnored:
		if u.Tag.Epoch != 0 {
			g, _ := b.Settle(clock, r, slice.Usage{})
			u.Tag = g.Tag
		}
	case AheadStands:
		if ahead(a, clock) {
			clock = b.At
		}
	case AheadUnwritten:
		if ahead(a, clock) {
			b = ledger.Account{Stored: true, At: clock, Used: b.Used - b.Lent()}
		}
	case TurnUnlent, TurnBesideSlices:
		g, wrote := m.settleTurns(&b, clock, r, u)
		if wrote {
			*a = b
		}
		return g, wrote
	case UncoveredFree, UncoveredIgnored, UncoveredRenewed, RefusalGrants:
		return m.settleInParts(a, clock, r, u)
	}
	g, wrote := b.Settle(clock, r, u)
	if wrote {
		*a = b
	}
	return g, wrote
}

// dropFirst brings an account to the present in the wrong order.
func dropFirst(a ledger.Account, now int64, r slice.Rule) ledger.Account {
	if r.Window > 0 && a.At/r.Window != now/r.Window || !a.Stored {
		return a
	}
	for e := epochOf(a.At); e < epochOf(now) && a.Lent() > 0; e++ {
		a.Old, a.Young = a.Young, 0
	}
	if r.Window == 0 {
		a.Used -= r.Rate * float64(now-a.At)
	}
	a.Used, a.At = max(a.Lent(), a.Used), now
	return a
}

// settleInParts does in several settles what ought to be one.
func (m *Machine) settleInParts(a *ledger.Account, clock int64, r slice.Rule, u slice.Usage) (slice.Grant, bool) {
	report := slice.Usage{Tag: u.Tag, Spent: u.Spent, Returned: u.Returned, Held: u.Held}
	want := slice.Usage{Want: u.Want, Least: u.Least, Unit: u.Unit, Divisor: u.Divisor}
	u.Tag.Epoch, u.Spent, u.Returned, u.Held = 0, 0, 0, 0
	if m.Flaw == RefusalGrants {
		u.Want = 0
	} else {
		want.Want = 0
	}
	first, wrote := m.bookReport(a, clock, r, report)
	g, wrote2 := a.Settle(clock, r, u)
	g.Dropped = first.Dropped
	last, wrote3 := a.Settle(clock, r, want)
	if m.Flaw == RefusalGrants {
		g.Granted, g.Used, g.Lent = last.Granted, last.Used, last.Lent
	}
	return g, wrote || wrote2 || wrote3
}

// bookReport books a report, and with some flaws not what no lease covers.
func (m *Machine) bookReport(a *ledger.Account, clock int64, r slice.Rule, u slice.Usage) (slice.Grant, bool) {
	before := lentAt(*a, clock, r)
	b := *a
	g, wrote := b.Settle(clock, r, u)
	uncovered := uncoveredBy(&u, &g, before)
	switch {
	case uncovered == 0 || m.Flaw == RefusalGrants:
	case m.Flaw == UncoveredRenewed:
		if g.Dropped {
			g.Dropped = false
			b.Young += float64(u.Held)
		}
	case m.Flaw == UncoveredFree:
		b.Used = max(b.Lent(), b.Used-float64(uncovered))
	default:
		b.Young -= float64(min(u.Held, uncovered))
		b.Used = max(b.Lent(), b.Used-float64(uncovered))
	}
	b.Stored = b.Used > 0
	if wrote {
		*a = b
		if !b.Stored {
			*a = ledger.Account{}
		}
	}
	return g, wrote
}

// lentAt returns what an account has lent, by a settle that says nothing.
func lentAt(a ledger.Account, clock int64, r slice.Rule) int64 {
	g, _ := a.Settle(clock, r, slice.Usage{})
	return g.Lent
}
