package modelcheck

import (
	"fmt"

	"github.com/hybridlimit/hybrid/slice"
)

// Liveness: what must come true once nothing goes wrong any more. Settles
// that nobody waits for never run, and what a node says is heard at once.

// stuck returns what never comes true from here, "" if all does.
func (m *Machine) stuck(w *World) string {
	if broken := m.neverFree(*w); broken != "" {
		return broken
	}
	for _, cost := range []int64{1, m.lowest()} {
		for who := 1; who < 1<<m.Nodes; who++ {
			if when := m.neverAdmitted(*w, who, cost); when != "" {
				return fmt.Sprintf("asks: of the nodes %b none is admitted %s, each asking for %d", who, when, cost)
			}
		}
	}
	return ""
}

// lowest is the lowest burst of all limits: the largest cost that every node can admit.
func (m *Machine) lowest() int64 {
	b := m.wide.Burst
	for _, r := range m.Rules {
		b = min(b, r.Burst)
	}
	return b
}

// neverFree checks that two lease epochs after the last settle nothing is lent,
// and that the account is then empty as soon as it can have drained.
func (m *Machine) neverFree(w World) string {
	lag := max(0, w.key.account.At-w.clock())
	m.wait(&w, 2*slice.Epoch+lag)
	if n := m.present(&w).Lent; n > 0 {
		return fmt.Sprintf("free: %d lent after two epochs", n)
	}
	for i := range w.nodes[:m.Nodes] {
		if n := &w.nodes[i]; n.alive() && n.tokens > 0 {
			return fmt.Sprintf("free: node %d still has a slice after two epochs", i)
		}
	}
	m.wait(&w, m.drainTime(&w))
	if w.key.account.Stored && !w.key.gone(w.clock()) {
		return "free: the key never expires"
	}
	return ""
}

// standstill is how long an account stands still, for the store's clock is behind it,
// when somebody asks for it.
func standstill(w *World) int64 {
	if ahead(&w.key.account, w.clock()) {
		return 0
	}
	return max(0, w.key.account.At-w.clock())
}

// drainTime is how long an account can take to drain or its window to end, and
// the key's last millisecond.
func (m *Machine) drainTime(w *World) int64 {
	if m.wide.Window > 0 {
		return m.wide.Window + 2000
	}
	return int64(max(w.key.account.Used, 2*m.burst())/m.slowest()) + 2000
}

// neverAdmitted lets the nodes in a set keep asking for a cost. If it fits when
// they have returned their slices, one of them must be admitted before all have
// asked twice, and otherwise once leases have ended and the account has drained.
func (m *Machine) neverAdmitted(w World, who int, cost int64) (when string) {
	w.late = [maxLate]Flight{}
	m.landAll(&w, who)
	fits := m.fits(&w, who, cost)
	if m.isAnyAdmitted(&w, who, cost) || m.isAnyAdmitted(&w, who, cost) {
		return ""
	}
	if fits {
		return "while it fits"
	}
	until := w.now + standstill(&w) + 2*slice.Epoch + m.drainTime(&w)
	for w.now <= until {
		m.wait(&w, max(m.Steps[0], slice.Epoch/12))
		if m.isAnyAdmitted(&w, who, cost) {
			return ""
		}
	}
	return "ever"
}

// landAll ends the settles under way of the nodes in a set.
func (m *Machine) landAll(w *World, who int) {
	for i := range w.nodes[:m.Nodes] {
		n := &w.nodes[i]
		if who&(1<<i) == 0 || n.flight.state == none {
			continue
		}
		if n.flight.state == sent {
			m.execute(w, &n.flight)
		}
		m.receive(w, n)
	}
}

// fits reports whether a cost fits an account by the limit of each node in a set
// once they have returned what they hold. After a fault of the store nobody can
// say whether the account takes that back.
func (m *Machine) fits(w *World, who int, cost int64) bool {
	if w.book.faults > 0 || w.left.Jumps != m.Faults.Jumps {
		return false
	}
	a, held := w.key.at(w.clock()), int64(0)
	for i := range w.nodes[:m.Nodes] {
		if who&(1<<i) != 0 {
			held += m.returnable(w, &w.nodes[i])
		}
		if w.nodes[i].owes > 0 {
			return false // the settle that asks tells it
		}
	}
	for i := range w.nodes[:m.Nodes] {
		rule := m.Rules[w.nodes[i].rule]
		g, _ := a.Settle(w.clock(), rule, slice.Usage{})
		beyond := a.Used > 2*float64(rule.Burst) // what a higher limit used may be as much in the way as what is held
		if who&(1<<i) != 0 && (beyond || float64(cost) > float64(rule.Burst)-(g.Used-float64(held))) {
			return false
		}
	}
	return true
}

// returnable is what a node can return: nothing of a lease in doubt or forgotten.
func (m *Machine) returnable(w *World, n *Node) int64 {
	if !n.lease.Holds() || n.lease.InDoubt() {
		return 0
	}
	m.pickUp(n)
	lease := n.lease
	u := lease.Report(&m.cell, 0)
	return m.returning(w, &Flight{state: sent, tag: u.Tag, returned: u.Returned}, m.present(w).Tag)
}

// isAnyAdmitted lets the nodes in a set serve a request each.
func (m *Machine) isAnyAdmitted(w *World, who int, cost int64) bool {
	for i := range w.nodes[:m.Nodes] {
		if who&(1<<i) != 0 && m.isAdmitted(w, &w.nodes[i], cost) {
			return true
		}
	}
	return false
}

// isAdmitted lets a node serve one request, as it would.
func (m *Machine) isAdmitted(w *World, n *Node, cost int64) bool {
	if m.take(w, n, cost) {
		return true
	}
	before := m.total
	m.send(w, n, m.askFor(cost))
	m.execute(w, &n.flight)
	m.receive(w, n)
	return m.total > before
}

// askFor returns the ask with a need of a cost, and a wish for a slice.
func (m *Machine) askFor(cost int64) uint8 {
	for i := len(m.Asks); i < len(m.asks); i++ {
		if m.asks[i].Needs[0].Cost == cost {
			return uint8(i)
		}
	}
	m.asks = append(m.asks, Ask{Needs: []slice.Need{{Cost: cost, Count: 1}}, Want: m.wide.Burst}.complete())
	return uint8(len(m.asks) - 1)
}
