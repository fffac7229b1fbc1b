package modelcheck

import (
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// What happens to the store, and what it permits.

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
	}
	w.skew += us
	w.peak = max(w.peak, w.clock())
	if us < 0 {
		m.jumpedBack(w, -us)
	}
}

// jumpedBack loosens the promise if the account is far ahead of the clock now:
// what it has lent is forgotten, and times come again that it has seen. If there
// is no account, forgets will see it.
func (m *Machine) jumpedBack(w *World, us int64) {
	w.book.again = ahead(&w.key.account, w.clock())
	if w.book.again {
		m.fault(w, m.burst()+m.stepPermits(us))
	}
}

// ahead reports whether an account is so far ahead of the store's clock that its
// leases are lost.
func ahead(a *ledger.Account, clock int64) bool { return a.At > clock+2*slice.Epoch }

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
