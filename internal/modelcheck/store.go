package modelcheck

import (
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// The steps of the store: the account is the real arithmetic, and around it is
// what Redis does with a key.

// execute runs a settle, now.
func (m *Machine) execute(w *World, f *Flight) {
	clock, rule := w.clock(), m.Rules[f.rule]
	if w.key.gone(clock) {
		w.key = Key{}
	}
	u := m.usage(f)
	a := w.key.account
	before := m.present(w)
	g, wrote := m.settle(&a, clock, rule, u)
	if wrote {
		w.key.write(a, clock, m.ttl(&a, clock, rule, w.key.left(clock)))
	}
	f.reply = Reply{dropped: g.Dropped, granted: g.Granted, tag: g.Tag, life: g.Life}
	w.book.enter(g.Tag.Window)
	m.book(w, &u, g)
	if wrote {
		m.broken = m.checkWrite(w, &u, before, g)
	}
}

// book counts what a settle admitted; a refund is a negative admission.
func (m *Machine) book(w *World, u *slice.Usage, g slice.Grant) {
	m.admit(w, admitted(u, g))
	if u.Charged < 0 && (u.Tag.Window == 0 || u.Tag.Window == g.Tag.Window) {
		m.admit(w, int64(u.Charged))
	}
}

// admitted returns the tokens that a settle admitted.
func admitted(u *slice.Usage, g slice.Grant) (sum int64) {
	for i, n := range u.Needs {
		sum += g.Admitted[i] * n.Cost
	}
	return sum
}

// usage is what a settle says.
func (m *Machine) usage(f *Flight) slice.Usage {
	a := &m.asks[f.ask]
	u := slice.Usage{Tag: f.tag, Spent: f.spent, Returned: f.returned, Held: f.held,
		Charged: a.Charged, Fallback: a.Fallback, Needs: a.Needs}
	if !f.marked {
		u.Want, u.Least, u.Unit, u.Divisor = a.Want, a.Least, a.Unit, a.Divisor
	}
	return u
}

// lentAt returns what an account has lent, by a settle that says nothing.
func lentAt(a ledger.Account, clock int64, r slice.Rule) int64 {
	g, _ := a.Settle(clock, r, slice.Usage{})
	return g.Lent
}

// present is what a settle that says nothing would be told.
func (m *Machine) present(w *World) slice.Grant {
	a := w.key.at(w.clock())
	g, _ := a.Settle(w.clock(), m.wide, slice.Usage{})
	return g
}

// left is the key's PTTL in ms.
func (k *Key) left(clock int64) int64 { return k.until - clock/1000 }

// write stores an account; an empty one is no key at all.
func (k *Key) write(a ledger.Account, clock, ttl int64) {
	if !a.Stored {
		*k = Key{}
		return
	}
	*k = Key{account: a, until: clock/1000 + ttl}
}

// ttl is how long a key lives that is written now.
func (m *Machine) ttl(a *ledger.Account, clock int64, r slice.Rule, left int64) int64 {
	switch m.Flaw {
	case ShortTTL:
		b := *a
		b.Used, b.Young, b.Old = a.Used, 0, 0
		return b.TTL(clock, r, left)
	case LowerTTL:
		left = 0
	}
	return a.TTL(clock, r, left)
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
	case UncoveredFree, UncoveredIgnored, RefusalGrants:
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

// Faults of the store.

// forget is a restart without the data.
func (m *Machine) forget(w *World) {
	w.key = Key{}
	m.fault(w, m.burst())
}

// failover makes the replica the store, as of its last copy.
func (m *Machine) failover(w *World) {
	w.key = w.replica
	m.fault(w, m.burst())
}

// jump steps the store's clock.
func (m *Machine) jump(w *World, us int64) {
	if us > 0 {
		m.fault(w, m.stepPermits(us))
	} else {
		w.book.again = false
	}
	w.skew += us
	w.peak = max(w.peak, w.clock())
}

// stepPermits is what may be admitted more when the clock steps.
func (m *Machine) stepPermits(us int64) float64 {
	if m.wide.Window > 0 {
		return m.burst()
	}
	return min(m.burst(), m.rate()*float64(us))
}

// forgets notes that nothing is stored while the store's clock shows a time that
// it has shown before. Then it is not known what was admitted at that time.
func (m *Machine) forgets(w *World) {
	if w.clock() < w.peak && !w.key.at(w.clock()).Stored && !w.book.again && !m.Literal {
		w.book.again = true
		m.fault(w, m.stepPermits(w.peak-w.clock()))
	}
}
