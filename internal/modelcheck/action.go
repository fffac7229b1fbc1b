package modelcheck

// Op is what happens.
type Op uint8

// All that can happen. A pick is an index into the setup's list.
const (
	take      Op = iota // a node admits Costs[pick] from its slice
	giveBack            // a node undoes an admission of Costs[pick], in its slice
	refund              // a node that cannot do so is to tell the store of it
	charge              // a node is charged Costs[pick]: its slice pays, or it is to tell the store
	send                // a node sends Asks[pick]
	execute             // the store executes a node's settle
	receive             // a node gets the reply
	refuse              // a node hears that its settle was not executed
	lose                // a node will never know
	resend              // the client sends a settle again
	runLate             // the store executes settle pick of those that nobody waits for
	crash               // a node starts again
	fire                // a node's watermark moves in time
	useTurn             // a caller that waits goes
	leaveTurn           // a caller that waits leaves
	renewTurn           // a node lends its turn anew; pick 1: and will never know
	tellTurn            // the store hears what became of a turn
	change              // a node hears of the next limit
	wait                // Steps[pick] passes
	edge                // time passes until something ends (pick 0), or until just after it (pick 1)
	expire              // the store removes a key that has expired
	forget              // the store starts again without its data
	replicate           // the replica gets a copy
	failover            // the replica takes over
	jump                // the store's clock makes a step of Jumps[pick]
	ops
)

// Action is one step of a world.
type Action struct {
	op   Op
	node uint8
	pick uint8
}

// actions appends all that might happen next. What turns out to change nothing
// is for apply to say.
func (m *Machine) actions(w *World, to []Action) []Action {
	for i := range uint8(m.Nodes) {
		to = m.nodeActions(w, i, to)
	}
	for i := range w.late {
		if w.late[i].state == sent {
			to = append(to, Action{op: runLate, pick: uint8(i)})
		}
	}
	to = each(to, Action{op: wait}, len(m.Steps))
	if m.Edges {
		to = each(to, Action{op: edge}, 2)
	}
	return m.storeActions(w, to)
}

// nodeActions appends what may happen to one node.
func (m *Machine) nodeActions(w *World, i uint8, to []Action) []Action {
	n := &w.nodes[i]
	if n.alive() {
		to = m.sliceActions(w, i, to)
	}
	if w.left.Refunds > 0 {
		to = each(to, Action{op: refund, node: i}, len(m.Costs))
	}
	if w.left.Charges > 0 {
		to = each(to, Action{op: charge, node: i}, len(m.Costs))
	}
	if w.left.Crashes > 0 && *n != (Node{rule: n.rule}) && (n.flight.state != sent || w.roomLate()) {
		to = append(to, Action{op: crash, node: i})
	}
	if w.left.Changes > 0 {
		to = append(to, Action{op: change, node: i})
	}
	return m.flightActions(w, i, m.turnActions(w, i, to))
}

// sliceActions appends what may happen to a slice that is alive.
func (m *Machine) sliceActions(w *World, i uint8, to []Action) []Action {
	n := &w.nodes[i]
	if n.tokens > 0 {
		to = each(to, Action{op: take, node: i}, len(m.Costs))
	}
	if w.left.Refunds > 0 {
		to = each(to, Action{op: giveBack, node: i}, len(m.Costs))
	}
	if m.due(w, n) {
		to = append(to, Action{op: fire, node: i})
	}
	return to
}

// flightActions appends what may become of a node's settle.
func (m *Machine) flightActions(w *World, i uint8, to []Action) []Action {
	switch w.nodes[i].flight.state {
	case none:
		return each(to, Action{op: send, node: i}, len(m.Asks))
	case sent:
		to = append(to, Action{op: execute, node: i})
		if w.left.NotRun > 0 {
			to = append(to, Action{op: refuse, node: i})
		}
	case ran:
		to = append(to, Action{op: receive, node: i})
		if m.Flaw == Resent && w.left.Resends > 0 {
			to = append(to, Action{op: resend, node: i})
		}
	}
	if w.left.Lost > 0 && (w.nodes[i].flight.state == ran || w.roomLate()) {
		to = append(to, Action{op: lose, node: i})
	}
	return to
}

// storeActions appends what may happen to the store.
func (m *Machine) storeActions(w *World, to []Action) []Action {
	if w.key.account.Stored && w.key.gone(w.clock()) {
		to = append(to, Action{op: expire})
	}
	a, b := m.lookAt(&w.key, w.clock()), m.lookAt(&w.replica, w.clock())
	if w.left.Losses > 0 && a.Stored {
		to = append(to, Action{op: forget})
	}
	if w.left.Copies > 0 && a != b {
		to = append(to, Action{op: replicate})
	}
	if w.left.Failovers > 0 && a != b {
		to = append(to, Action{op: failover})
	}
	if w.left.Jumps > 0 {
		to = each(to, Action{op: jump}, len(m.Jumps))
	}
	return to
}

// each appends an action with every pick.
func each(to []Action, a Action, n int) []Action {
	for i := range n {
		a.pick = uint8(i)
		to = append(to, a)
	}
	return to
}

func (w *World) roomLate() bool {
	for i := range w.late {
		if w.late[i].state == none {
			return true
		}
	}
	return false
}
