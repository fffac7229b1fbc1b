package modelcheck

import (
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// What the store does: the account is the real arithmetic, and around it is what
// Redis does with a key.

// execute runs a settle, now.
func (m *Machine) execute(w *World, f *Flight) {
	rule := m.Rules[f.rule]
	u := m.usage(f)
	g := m.settleKey(w, rule, &u, f.backs)
	f.reply = Reply{dropped: g.Dropped, granted: g.Granted, tag: g.Tag, life: g.Life, turn: reserved(rule, &u, &g)}
	if f.reply.turn > 0 {
		f.reply.goes = until(rule, &g)
	}
	m.hear(w, f)
}

// settleKey settles the account, and judges what that has admitted and written.
func (m *Machine) settleKey(w *World, rule slice.Rule, u *slice.Usage, backs int64) slice.Grant {
	clock := w.clock()
	if w.key.gone(clock) {
		w.key = Key{}
	}
	a, left := w.key.account, w.key.left(clock)
	before := m.present(w)
	g, wrote := m.settle(&a, clock, rule, *u)
	if wrote {
		w.key.write(a, clock, m.ttl(&a, clock, rule, w.key.account, left))
	}
	w.book.enter(g.Tag.Window)
	m.count(w, rule, u, g, backs)
	if wrote {
		m.broken = m.checkWrite(w, rule, u, before, g)
	}
	return g
}

// count books what a settle admitted. A refund, which comes first, is a negative
// admission.
func (m *Machine) count(w *World, r slice.Rule, u *slice.Usage, g slice.Grant, backs int64) {
	charged := int64(u.Charged)
	if m.Flaw == RefundTwice {
		charged += backs // the slice has taken it back, and the book has it
	}
	if charged < 0 && (u.Tag.Window == 0 || u.Tag.Window == g.Tag.Window) {
		m.admit(w, charged)
	}
	m.admit(w, admitted(r, u, g))
}

// admitted returns the tokens that a settle admitted: not those of a turn, which are lent.
func admitted(r slice.Rule, u *slice.Usage, g slice.Grant) (sum int64) {
	for i, n := range u.Needs {
		sum += g.Admitted[i] * n.Cost
	}
	return sum - reserved(r, u, &g)
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
