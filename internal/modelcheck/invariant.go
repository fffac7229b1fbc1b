package modelcheck

import (
	"fmt"

	"github.com/hybridlimit/hybrid/slice"
)

// check returns the first invariant that a world breaks, "" if it keeps them.
// Its name is what stands before the colon.
func (m *Machine) check(w *World) string {
	if m.broken != "" {
		return m.broken
	}
	if broken := m.overdrawn(&w.book); broken != "" {
		return broken
	}
	if broken := checkKey(&w.key); broken != "" {
		return broken
	}
	now := m.present(w)
	if held := m.held(w, now.Tag); held > now.Lent && (w.book.faults == 0 || !w.uncertain(w.book.faults-1)) {
		return fmt.Sprintf("lent >= held: lent %d, held %d", now.Lent, held)
	}
	if broken := m.checkKnown(w); broken != "" {
		return broken
	}
	return m.checkNodes(w)
}

// checkWrite judges what a settle has written.
func (m *Machine) checkWrite(w *World, r slice.Rule, u *slice.Usage, before, g slice.Grant) string {
	a := &w.key.account
	spent := before.Used - float64(before.Lent) - max(0, -u.Charged)
	if u.Tag.Epoch != 0 && !forgot(u, &g) {
		spent += float64(u.Spent)
	}
	if ended(u, &g) {
		spent += float64(u.Held)
	}
	spent = max(0, spent) + float64(admitted(r, u, g))
	if now := a.Used - a.Lent(); now < spent-slack {
		return fmt.Sprintf("charged: %.6g is not lent, %.6g was spent", now, spent)
	}
	if n := uncoveredBy(u, &g, before.Lent+reserved(r, u, &g)); n != 0 && w.book.faults == 0 && w.left.Jumps == m.Faults.Jumps {
		return fmt.Sprintf("once: no lease covers %d of the tokens reported", n)
	}
	if rest := drained(*a, (w.key.until+1)*1000, m.wide); rest.Used > slack {
		return fmt.Sprintf("ttl: the key expires with %.6g used and %.6g lent", rest.Used, rest.Lent())
	}
	return ""
}

// uncoveredBy returns how much of what a settle reported no lease covered: of
// what was lent before it, or for a turn by it, and is lent now, the rest was covered.
func uncoveredBy(u *slice.Usage, g *slice.Grant, before int64) int64 {
	if u.Tag.Epoch == 0 || forgot(u, g) {
		return 0
	}
	covered := before + g.Granted - g.Lent
	if !g.Dropped {
		covered += u.Held
	}
	return u.Spent + u.Returned + u.Held - covered
}

// forgot reports whether a settle ignored the lease that it was told of.
func forgot(u *slice.Usage, g *slice.Grant) bool {
	return g.Dropped && (u.Tag.Epoch < g.Tag.Epoch-1 || u.Tag.Window != g.Tag.Window)
}

// ended reports whether a settle charged what the slice still held.
func ended(u *slice.Usage, g *slice.Grant) bool {
	return u.Tag.Epoch != 0 && g.Dropped && !forgot(u, g)
}

func checkKey(k *Key) string {
	a := &k.account
	if a.Used < a.Lent() || a.Young < 0 || a.Old < 0 || a.Stored != (a.Used > 0) {
		return fmt.Sprintf("used >= lent: %+v", *a)
	}
	return ""
}

// checkNodes is the nodes' own ledger: nothing is spent that was not there.
func (m *Machine) checkNodes(w *World) string {
	for i := range w.nodes[:m.Nodes] {
		n := &w.nodes[i]
		m.pickUp(n)
		if k := n.lease.Unreported(&m.cell); k < 0 && m.Flaw != ReturnsLate {
			return fmt.Sprintf("unreported >= 0: node %d: %d", i, k)
		}
	}
	return ""
}

// held is H of the proof: what may still be spent from slices or is on its way
// to or from one.
func (m *Machine) held(w *World, now slice.Tag) (sum int64) {
	for i := range w.nodes[:m.Nodes] {
		n := &w.nodes[i]
		sum += m.inSlice(w, n) + m.inTurn(w, n, now) + m.returning(w, &n.flight, now)
	}
	for i := range w.late {
		sum += m.returning(w, &w.late[i], now)
	}
	return sum
}

// inSlice is what a node may spend before it hears of the store again. A reply
// that still comes in time wakes a slice that has ended, and brings a grant.
func (m *Machine) inSlice(w *World, n *Node) (tokens int64) {
	f := &n.flight
	if n.alive() {
		tokens = n.tokens
	}
	if f.state != ran || f.marked {
		return tokens
	}
	if expiry, _ := m.deadline(w, *f); expiry.After(slice.TickAt(w.now*1000)) && (f.held > 0 || f.reply.granted > 0) {
		if !f.reply.dropped {
			tokens = n.tokens
		}
		tokens += f.reply.granted
	}
	return tokens
}

// returning is what a settle takes off the account if it runs now. A lease that
// is over has left the account, even if the store's clock steps back after that.
func (m *Machine) returning(w *World, f *Flight, now slice.Tag) int64 {
	if f.state != sent || f.tag.Epoch == 0 || f.tag.Epoch < max(now.Epoch, epochOf(w.peak))-1 {
		return 0
	}
	if m.wide.Window > 0 && f.tag.Window != max(now.Window, w.book.newest) {
		return 0
	}
	return f.returned
}
