package modelcheck

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// digest is 128 bits of a world, for the set of those that were visited. Worlds
// of one digest behave alike: times count from now and epochs from the present
// one, nodes have no names, and what can no longer matter is left out. Two
// different worlds of 100 million share one with a probability below 10⁻²².
type digest struct{ a, b uint64 }

// add mixes a number into both halves.
func (d *digest) add(v uint64) {
	hi, lo := bits.Mul64(d.a^v^0x9e3779b97f4a7c15, 0xa0761d6478bd642f)
	d.a = hi ^ lo
	hi, lo = bits.Mul64(d.b^v^0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3)
	d.b = hi ^ lo + bits.RotateLeft64(d.b, 23)
}

func (d *digest) int(v int64) { d.add(uint64(v)) }

// count adds a quantity. Sums in another order may differ in the last bits.
func (d *digest) count(v float64) { d.int(int64(math.Round(v * 0x1p30))) }

func (d *digest) flag(v bool) {
	if v {
		d.add(1)
		return
	}
	d.add(2)
}

func compare(x, y digest) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) }

// digest returns that of a world.
func (m *Machine) digest(w *World) (d digest) {
	clock := w.clock()
	d.int(clock % slice.Epoch)
	if size := m.wide.Window; size > 0 {
		d.int(clock % size)
		m.addWindows(&d, &w.book, clock/size)
	}
	d.int(w.peak - clock)
	m.addKey(&d, &w.key, clock)
	if w.left.Failovers > 0 {
		m.addKey(&d, &w.replica, clock)
	}
	m.addParts(&d, w)
	m.addBook(&d, w)
	f := w.left
	d.add(uint64(f.Lost) | uint64(f.NotRun)<<8 | uint64(f.Crashes)<<16 | uint64(f.Losses)<<24 | uint64(f.Copies)<<32)
	d.add(uint64(f.Failovers) | uint64(f.Jumps)<<8 | uint64(f.Changes)<<16 | uint64(f.Refunds)<<24 | uint64(f.Resends)<<32 | uint64(f.Charges)<<40)
	return d
}

// addParts adds the nodes and the late settles, in an order of their own.
func (m *Machine) addParts(d *digest, w *World) {
	var parts [maxNodes + maxLate]digest
	for i := range w.nodes[:m.Nodes] {
		parts[i] = m.digestNode(w, &w.nodes[i])
	}
	late := parts[m.Nodes : m.Nodes+maxLate]
	for i := range w.late {
		if f := &w.late[i]; !m.forgotten(w, f.tag) || m.asks[f.ask].speaks(f.marked) || f.owes+f.backs > 0 {
			m.addFlight(&late[i], w, f, false)
		} else {
			late[i].add(5)
		}
	}
	slices.SortFunc(parts[:m.Nodes], compare)
	slices.SortFunc(late, compare)
	for _, p := range parts[:m.Nodes+maxLate] {
		d.add(p.a)
		d.add(p.b)
	}
}

// addKey adds a key.
func (m *Machine) addKey(d *digest, k *Key, clock int64) {
	a := m.lookAt(k, clock)
	if !a.Stored {
		d.add(3)
		return
	}
	d.count(a.Used)
	d.int(int64(a.Young)<<32 | int64(a.Old))
	d.int(a.At - clock)
	if m.expiryMatters() || a.Used > 2*m.burst() {
		d.int(k.until - clock/1000)
	}
}

// lookAt is an account, of two that are alike the same. With one limit and a clock
// that does not step, one that has drained up to now is like one that will.
func (m *Machine) lookAt(k *Key, clock int64) ledger.Account {
	if m.drains() {
		return drained(k.account, clock, m.wide)
	}
	return k.account
}

// drains reports whether accounts may be compared as of now.
func (m *Machine) drains() bool {
	return len(m.Rules) == 1 && m.Faults.Jumps == 0 && m.Flaw != DropFirst
}

// expiryMatters reports whether it can be told when a key expires. It cannot if
// the account is empty by then, which is checked whenever no more than a debt is
// written.
func (m *Machine) expiryMatters() bool {
	return !m.drains() || m.Flaw == ShortTTL || m.Flaw == LowerTTL
}

// drained is an account as of now, as the next settle will find it.
func drained(a ledger.Account, clock int64, r slice.Rule) ledger.Account {
	g, _ := a.Settle(clock, r, slice.Usage{})
	if g.Used == 0 {
		return ledger.Account{}
	}
	old := 0.0
	switch epochOf(g.Now) - epochOf(a.At) {
	case 0:
		old = a.Old
	case 1:
		old = a.Young
	}
	old = min(old, float64(g.Lent)) // a new window has forgotten it
	return ledger.Account{Stored: true, At: g.Now, Used: g.Used, Young: float64(g.Lent) - old, Old: old}
}

func (m *Machine) digestNode(w *World, n *Node) (d digest) {
	d.int(int64(n.rule))
	d.int(n.owes<<32 | n.backs)
	m.addFlight(&d, w, &n.flight, true)
	m.addTurn(&d, w, &n.turn)
	if !n.lease.Holds() {
		d.add(4)
		return d
	}
	m.pickUp(n)
	d.flag(n.lease.InDoubt())
	lease := n.lease
	u := lease.Report(&m.cell, all)
	if m.isOver(w, n, u.Tag) {
		d.int(min(n.tokens, m.some)<<20 | min(u.Spent, m.some))
		return d
	}
	d.int(n.tokens<<32 | u.Spent)
	m.addTag(&d, w, u.Tag)
	if n.alive() {
		d.int(int64(n.expiry) - int64(slice.TickAt(w.now*1000)))
		d.int(n.latest - w.now)
	}
	return d
}

// isOver reports whether a slice is of no more use, and never will be.
func (m *Machine) isOver(w *World, n *Node, tag slice.Tag) bool {
	f := &n.flight
	renewed := f.state == ran && !f.marked && !f.reply.dropped
	return !n.alive() && !renewed && (n.lease.InDoubt() || m.forgotten(w, tag))
}

// forgotten reports whether the store ignores a lease from now on.
func (m *Machine) forgotten(w *World, tag slice.Tag) bool {
	if m.Faults.Jumps > 0 || m.Flaw == TagIgnored {
		return false
	}
	size := m.wide.Window
	return tag.Epoch < epochOf(w.clock())-1 || size > 0 && tag.Window != w.clock()/size
}

// addFlight adds a settle. When it was sent matters for the life of a lease, and
// for how long its node still waits.
func (m *Machine) addFlight(d *digest, w *World, f *Flight, waited bool) {
	if f.state == none {
		d.add(5)
		return
	}
	d.int(int64(f.state)<<16 | int64(f.ask)<<8 | int64(f.rule))
	d.flag(f.marked)
	if m.forgotten(w, f.tag) && !(f.state == ran && !f.reply.dropped) {
		// Reported in vain, or the node has them all again: which of them were to be held is nothing.
		d.int(min(f.spent, m.some)<<40 | min(f.returned+f.held, m.some))
		d.flag(f.returned > 0)
		d.flag(f.held > 0)
	} else {
		d.int(f.spent<<40 | f.returned<<20 | f.held)
	}
	d.int(f.owes<<32 | f.backs)
	m.addTag(d, w, f.tag)
	if waited && (m.Patience > 0 || f.held > 0 || m.asks[f.ask].Want > 0 || m.asks[f.ask].waits()) {
		d.int(min(w.now-f.sentAt, 3*slice.Epoch))
	}
	if f.state == ran {
		d.flag(f.reply.dropped)
		d.int(f.reply.granted)
		d.int(f.reply.turn)
		d.int(f.reply.goes)
		if f.held > 0 || f.reply.granted > 0 || f.reply.turn > 0 {
			m.addTag(d, w, f.reply.tag)
			d.int(f.reply.life)
		}
	}
}

// addTag adds the age of a lease. Of one that is forgotten only the window may
// matter, to which charges belong.
func (m *Machine) addTag(d *digest, w *World, t slice.Tag) {
	clock, window := w.clock(), int64(0)
	if size := m.wide.Window; size > 0 {
		window = clock/size - t.Window
	}
	switch {
	case t.Epoch == 0:
		d.add(7)
		d.flag(window == 0)
	case m.forgotten(w, t):
		d.add(8)
		d.flag(window == 0)
	default:
		d.int(epochOf(clock) - t.Epoch)
		d.int(window)
	}
}

// addWindows adds what was counted in windows that may come again.
func (m *Machine) addWindows(d *digest, b *Book, clock int64) {
	d.int(b.window - clock)
	if m.Faults.Jumps == 0 {
		return
	}
	d.int(b.newest - clock)
	for i := b.newest - maxWindows + 1; i <= b.newest; i++ {
		if i != b.window {
			d.count(float64(b.counts[i%maxWindows]))
		}
	}
}

// addBook adds what the promise depends on, but for the debt of all intervals.
func (m *Machine) addBook(d *digest, w *World) {
	b := &w.book
	d.int(int64(b.faults)<<8 | int64(b.over))
	d.flag(b.again)
	d.count(b.used)
	for j := range int(b.faults) {
		d.count(b.debts[j+1])
		d.int(max(0, b.ends[j]-w.now))
		d.int(max(0, b.epochs[j]-epochOf(w.clock())))
		d.count(b.leeway[j])
	}
}
