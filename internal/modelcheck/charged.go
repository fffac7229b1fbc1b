package modelcheck

import "fmt"

// What is promised of charges, as the book keeps it. Nobody can refuse a charge, so it
// may exceed the limit itself; but time in debt earns nothing, and nobody forgets it.
// It is charged when it is made and pending until it is in the account: what was used,
// less what is pending, the account has in its books at least.

// charges reports whether there are any, of one limit.
func (m *Machine) charges() bool { return m.Faults.Charges > 0 && len(m.Rules) == 1 }

// counts reports whether charges are judged: while the store is well.
func (m *Machine) counts(w *World) bool {
	return m.charges() && w.book.faults == 0 && w.left.Jumps == m.Faults.Jumps
}

// owe adds tokens to what was used.
func (m *Machine) owe(w *World, tokens int64) {
	if m.charges() {
		w.book.used = max(0, w.book.used+float64(tokens))
	}
}

// surely is what is used at least.
func (m *Machine) surely(w *World) float64 {
	used := w.book.used
	for i := range w.nodes[:m.Nodes] {
		n := &w.nodes[i]
		used -= float64(n.owes)
		if n.flight.state == sent {
			used -= float64(n.flight.owes)
		}
	}
	return used
}

// inDebt is how much of a time that is to pass more than the limit is used.
func (m *Machine) inDebt(w *World, us int64) float64 {
	if m.rate() == 0 || !m.counts(w) {
		return 0
	}
	return min(float64(us), max(0, m.surely(w)-m.burst())/m.rate())
}

// hear books that the store has executed a settle. A net refund is booked by count,
// what it takes from charges of the same settle here. An account goes no further into
// debt than to two bursts, and slices may hold as much of these as admissions leave.
// The settle still counts as pending.
func (m *Machine) hear(w *World, f *Flight) {
	if f.owes == 0 {
		return
	}
	asked := int64(max(0, -m.asks[f.ask].Charged)) // a refund of the ask itself
	m.owe(w, -min(f.owes, f.backs+asked))
	before := m.surely(w)
	if f.state != sent || !m.isUnderWay(w, f) {
		return // a late one: it was told again, or its node is gone
	}
	most := max(before, m.burst()+w.book.debts[0])
	w.book.used -= max(0, before+float64(f.owes)-most)
}

// isUnderWay reports whether a settle is one that a node waits for.
func (m *Machine) isUnderWay(w *World, f *Flight) bool {
	for i := range w.nodes[:m.Nodes] {
		if f == &w.nodes[i].flight {
			return true
		}
	}
	return false
}

// checkKnown returns by how much the account knows of less than was used.
func (m *Machine) checkKnown(w *World) string {
	if !m.counts(w) {
		return ""
	}
	if used, least := m.present(w).Used, m.surely(w); used < least-slack {
		return fmt.Sprintf("known: %.6g is used, %.6g was admitted and charged", used, least)
	}
	return ""
}
