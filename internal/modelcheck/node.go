package modelcheck

import (
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// The steps of a node: what the syncer does with a slice, by the real lease.

// take admits a request from the slice.
func (m *Machine) take(w *World, n *Node, cost int64) bool {
	m.pickUp(n)
	_, ok := m.cell.Take(cost, &m.dead)
	if ok {
		m.putDown(n)
		m.admit(w, cost)
	}
	return ok
}

// giveBack undoes an admission: it counts as a negative one.
func (m *Machine) giveBack(w *World, n *Node, cost int64) bool {
	m.pickUp(n)
	if !n.lease.Return(&m.cell, cost, &m.dead) {
		return m.Flaw == RefundFree && m.putMore(n, cost)
	}
	m.putDown(n)
	m.admit(w, -cost)
	if m.Flaw == RefundTwice {
		n.backs += cost
	}
	return true
}

// putMore puts tokens into a slice that were never taken from it.
func (m *Machine) putMore(n *Node, cost int64) bool {
	if !n.lease.Holds() || !n.alive() {
		return false
	}
	n.tokens += cost
	return true
}

// refund has a node tell the store of what its slice cannot take back.
func (m *Machine) refund(n *Node, cost int64) bool {
	m.pickUp(n)
	if m.Flaw == RefundTwice || n.lease.Return(&m.cell, cost, &m.dead) {
		return false
	}
	n.backs += cost
	return true
}

// charge takes from the slice what nobody was asked for, or has the node tell it.
func (m *Machine) charge(w *World, n *Node, cost int64) {
	m.owe(w, cost)
	m.pickUp(n)
	if _, ok := m.cell.Take(cost, &m.dead); ok {
		m.putDown(n)
		return
	}
	n.owes += cost
}

// send starts a settle, if there is anything to say.
func (m *Machine) send(w *World, n *Node, ask uint8) bool {
	a := &m.asks[ask]
	if a.waits() && n.turn.state != noTurn {
		return false // one at a time
	}
	m.pickUp(n)
	if n.lease.InDoubt() && (m.cell.Expired(&m.dead) || m.cell.Tokens() == 0) {
		m.lapse(n)
	}
	if n.owes+n.backs > 0 && m.ofAnotherWindow(w, n) {
		m.lapse(n)
	}
	before, marked := m.cell.Tokens(), n.lease.InDoubt()
	u := n.lease.Report(&m.cell, m.keep(a))
	if u.Spent+u.Returned+u.Held+n.owes+n.backs == 0 && !a.speaks(marked) {
		return false
	}
	m.putDown(n)
	if m.Flaw == ReturnsLate {
		n.tokens = before
	}
	n.flight = Flight{state: sent, ask: ask, rule: n.rule, marked: marked, sentAt: w.now,
		tag: u.Tag, spent: u.Spent, returned: u.Returned, held: u.Held, owes: n.owes, backs: n.backs}
	n.owes, n.backs = 0, 0
	if u.Tag == (slice.Tag{}) && (a.Charged != 0 || a.Fallback != 0 || n.flight.owes != n.flight.backs) {
		n.flight.tag.Window = m.windowOf(w.clock())
	}
	return true
}

// ofAnotherWindow reports whether a dead slice is of a window that is over: what is to
// be told of the present one must not be taken for that one's.
func (m *Machine) ofAnotherWindow(w *World, n *Node) bool {
	if !n.lease.Holds() || n.alive() {
		return false
	}
	lease := n.lease
	tag := lease.Report(&m.cell, all).Tag
	m.pickUp(n)
	return tag.Window != m.windowOf(w.clock())
}

// keep returns how many tokens may stay in the slice. A settle with needs
// returns it all, as it could not serve them.
func (m *Machine) keep(a *Ask) int64 {
	if len(a.Needs) > 0 && m.Flaw == NeedKeeps {
		return all
	}
	return a.Keep
}

// speaks reports whether an ask says something without a slice to report.
func (a *Ask) speaks(marked bool) bool {
	return len(a.Needs) > 0 || a.Charged != 0 || a.Fallback != 0 || a.Want > 0 && !marked
}

// lapse gives the lease up in silence.
func (m *Machine) lapse(n *Node) {
	n.lease.Lapse(&m.cell)
	n.expiry = 0
}

// receive ends a settle with its reply. A deadline that is over already moves
// the watermark before the cell can be taken from.
func (m *Machine) receive(w *World, n *Node) {
	f := m.land(n)
	if !f.marked {
		expiry, latest := m.deadline(w, f)
		m.renew(w, n, slice.Grant{Dropped: f.reply.dropped, Granted: f.reply.granted, Tag: f.reply.tag}, expiry, latest)
	}
	m.putDown(n)
	m.stand(w, n, f)
}

// renew takes over a grant.
func (m *Machine) renew(w *World, n *Node, g slice.Grant, expiry slice.Tick, latest int64) {
	if !expiry.After(slice.TickAt(w.now * 1000)) {
		m.dead.Pass(expiry)
	}
	n.lease.Ran(&m.cell, g, expiry)
	n.expiry, n.latest = expiry, latest
	if !n.lease.Holds() {
		n.expiry = 0
	}
}

// land takes the settle from its node, whose cell is picked up.
func (m *Machine) land(n *Node) Flight {
	f := n.flight
	n.flight = Flight{}
	if m.Flaw == ReturnsLate {
		n.tokens -= min(n.tokens, f.returned)
	}
	m.pickUp(n)
	return f
}

// deadline returns the tick at which a lease ends here, and the last moment at
// which a take may still not know. The assumptions of the promise are that a slow
// clock, a late timer and a take between two instructions make less than the guard.
func (m *Machine) deadline(w *World, f Flight) (slice.Tick, int64) {
	from := f.sentAt
	if m.Flaw == LifeFromReply {
		from = w.now
	}
	return m.deadlineFrom(from, f.reply.life)
}

func (m *Machine) deadlineFrom(from, life int64) (slice.Tick, int64) {
	guard := slice.Guard(time.Duration(life) * time.Microsecond).Microseconds()
	late := guard - slice.TickLength.Microseconds()
	end := from + life - guard
	if m.Flaw == Unguarded {
		end = from + life
	}
	return slice.TickAt(end * 1000), end + late
}

// refuse ends a settle that certainly was not executed.
func (m *Machine) refuse(n *Node) {
	f := m.land(n)
	n.lease.NotRun(&m.cell)
	n.owes, n.backs = n.owes+f.owes, n.backs+f.backs
	m.putDown(n)
}

// lose ends a settle without a reply. It may still run.
func (m *Machine) lose(w *World, n *Node) {
	if n.flight.state == sent {
		w.overdue(n.flight)
	}
	f := m.land(n)
	switch {
	case m.Flaw == UnknownNotRun:
		n.lease.NotRun(&m.cell)
	case m.Flaw == UnknownRan && f.held > 0:
		tag := slice.Tag{Epoch: epochOf(w.clock()), Window: m.windowOf(w.clock())}
		expiry, latest := m.deadlineFrom(f.sentAt, (tag.Epoch+2)*slice.Epoch-w.clock())
		m.renew(w, n, slice.Grant{Tag: tag}, expiry, latest)
	case m.Flaw == Unmarked && f.held > 0:
		m.renew(w, n, slice.Grant{Tag: f.tag}, n.expiry, n.latest)
	default:
		n.lease.Lost()
	}
	m.tellAgain(w, n, f)
	m.putDown(n)
}

// tellAgain keeps of a settle whose outcome is unknown what was charged beyond what was
// refunded: told twice it is too much for a while, never told it is lost. A refund
// that was told twice would be more than was taken.
func (m *Machine) tellAgain(w *World, n *Node, f Flight) {
	if m.Flaw == ChargeLost {
		return
	}
	n.owes += max(0, f.owes-f.backs)
	if f.state == sent {
		m.owe(w, -min(f.owes, f.backs))
	}
}

// crash starts a node again. What it had sent may still run.
func (m *Machine) crash(w *World, n *Node) {
	m.owe(w, -n.owes)
	if n.flight.state == sent {
		m.owe(w, -n.flight.owes)
		w.overdue(n.flight)
	}
	*n = Node{rule: n.rule}
}

// overdue keeps a settle that nobody waits for any more.
func (w *World) overdue(f Flight) {
	f.sentAt, f.marked = 0, false
	for i := range w.late {
		if w.late[i].state == none {
			w.late[i] = f
			return
		}
	}
	panic("more settles are overdue than may be lost")
}

// due reports whether the timer of a node's watermark may go off.
func (m *Machine) due(w *World, n *Node) bool {
	return !n.expiry.After(slice.TickAt(w.now * 1000))
}
