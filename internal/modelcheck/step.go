package modelcheck

import "github.com/hybridlimit/hybrid/slice"

// apply makes a step, and reports whether anything has happened.
func (m *Machine) apply(w *World, a Action) bool {
	m.broken = ""
	if !m.step(w, a) {
		return false
	}
	m.forgets(w)
	m.endSpans(w)
	if m.wide.Window > 0 {
		w.book.enter(m.windowOf(max(w.clock(), w.key.at(w.clock()).At)))
	}
	return true
}

// step does what an action says, to a node, to the time, or to the store.
func (m *Machine) step(w *World, a Action) bool {
	switch n := &w.nodes[a.node]; a.op {
	case take:
		return m.take(w, n, m.Costs[a.pick])
	case giveBack:
		w.left.Refunds--
		return m.giveBack(w, n, m.Costs[a.pick])
	case refund:
		w.left.Refunds--
		return m.refund(n, m.Costs[a.pick])
	case charge:
		w.left.Charges--
		m.charge(w, n, m.Costs[a.pick])
	case send:
		return m.send(w, n, a.pick)
	case execute:
		m.execute(w, &n.flight)
		n.flight.state = ran
	case receive:
		m.receive(w, n)
	case refuse:
		w.left.NotRun--
		m.refuse(n)
	case lose:
		w.left.Lost--
		m.lose(w, n)
	case resend:
		w.left.Resends--
		n.flight.state = sent
	case crash:
		w.left.Crashes--
		m.crash(w, n)
	case fire:
		n.dead = n.expiry
	case useTurn:
		return m.useTurn(w, n)
	case leaveTurn:
		n.turn.state = abandoned
	case renewTurn:
		w.left.Lost -= a.pick
		m.renewTurn(w, n, a.pick == 1)
	case tellTurn:
		m.tellTurn(w, n)
	case change:
		w.left.Changes--
		n.rule = uint8((int(n.rule) + 1) % len(m.Rules))
	case wait:
		return m.waitFor(w, m.Steps[a.pick])
	case edge:
		return m.waitFor(w, m.untilEdge(w, a.pick == 1))
	default:
		return m.stepStore(w, a)
	}
	return true
}

// stepStore does what an action says to the store.
func (m *Machine) stepStore(w *World, a Action) bool {
	switch a.op {
	case runLate:
		f := w.late[a.pick]
		w.late[a.pick] = Flight{}
		m.execute(w, &f)
	case expire:
		w.key = Key{}
	case forget:
		w.left.Losses--
		m.forget(w)
	case replicate:
		w.left.Copies--
		w.replica = w.key
	case failover:
		w.left.Failovers--
		m.failover(w)
	case jump:
		w.left.Jumps--
		m.jump(w, m.Jumps[a.pick])
	}
	return true
}

// waitFor lets time pass if all nodes would still wait for their replies.
func (m *Machine) waitFor(w *World, us int64) bool {
	for i := range w.nodes[:m.Nodes] {
		f := &w.nodes[i].flight
		if m.Patience > 0 && f.state != none && w.now+us-f.sentAt > m.Patience {
			return false
		}
	}
	m.wait(w, us)
	return us > 0
}

// wait lets time pass. Watermarks that may not be late any longer move.
func (m *Machine) wait(w *World, us int64) {
	m.pass(w, us)
	for i := range w.nodes[:m.Nodes] {
		if n := &w.nodes[i]; n.alive() && w.now > n.latest {
			n.dead = n.expiry
		}
	}
	if w.left.Jumps == 0 && w.key.gone(w.clock()) {
		w.key = Key{} // nothing can bring it back
	}
}

// untilEdge is how long it takes until a slice, a lease epoch, a window or a key
// ends, or until just after that.
func (m *Machine) untilEdge(w *World, after bool) int64 {
	clock := w.clock()
	next := (epochOf(clock)+1)*slice.Epoch - clock
	if size := m.wide.Window; size > 0 {
		next = min(next, size-clock%size)
	}
	if d := w.key.left(clock)*1000 + 1000 - clock%1000; w.key.account.Stored && d > 0 {
		next = min(next, d)
	}
	for i := range w.nodes[:m.Nodes] {
		if d := w.nodes[i].latest + 1 - w.now; w.nodes[i].alive() && d > 0 {
			next = min(next, d)
		}
	}
	if after {
		return next
	}
	return next - 1
}
