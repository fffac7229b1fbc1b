package modelcheck

import (
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// What the store does: the account is the real arithmetic, and around it is what
// Redis does with a key.

// execute runs a settle, now.
func (m *Machine) execute(w *World, f *Flight) {
	clock, rule := w.clock(), m.Rules[f.rule]
	if w.key.gone(clock) {
		w.key = Key{}
	}
	u := m.usage(f)
	a, left := w.key.account, w.key.left(clock)
	before := m.present(w)
	g, wrote := m.settle(&a, clock, rule, u)
	if wrote {
		w.key.write(a, clock, m.ttl(&a, clock, rule, w.key.account, left))
	}
	f.reply = Reply{dropped: g.Dropped, granted: g.Granted, tag: g.Tag, life: g.Life}
	w.book.enter(g.Tag.Window)
	m.count(w, &u, g, f.backs)
	m.hear(w, f)
	if wrote {
		m.broken = m.checkWrite(w, &u, before, g)
	}
}

// count books what a settle admitted. A refund, which comes first, is a negative
// admission.
func (m *Machine) count(w *World, u *slice.Usage, g slice.Grant, backs int64) {
	charged := int64(u.Charged)
	if m.Flaw == RefundTwice {
		charged += backs // the slice has taken it back, and the book has it
	}
	if charged < 0 && (u.Tag.Window == 0 || u.Tag.Window == g.Tag.Window) {
		m.admit(w, charged)
	}
	m.admit(w, admitted(u, g))
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
		Charged: a.Charged + float64(f.owes-f.backs), Fallback: a.Fallback, Needs: a.Needs}
	if !f.marked {
		u.Want, u.Least, u.Unit, u.Divisor = a.Want, a.Least, a.Unit, a.Divisor
	}
	return u
}

// present is what a settle that says nothing would be told.
func (m *Machine) present(w *World) slice.Grant {
	a := w.key.at(w.clock())
	g, _ := a.Settle(w.clock(), m.wide, slice.Usage{})
	return g
}

// left is the key's PTTL in ms; without a key there is none.
func (k *Key) left(clock int64) int64 {
	if !k.account.Stored {
		return -1
	}
	return k.until - clock/1000
}

// write stores an account; an empty one is no key at all.
func (k *Key) write(a ledger.Account, clock, ttl int64) {
	if !a.Stored {
		*k = Key{}
		return
	}
	*k = Key{account: a, until: clock/1000 + ttl}
}
