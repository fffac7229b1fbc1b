package modelcheck

import (
	"fmt"
	"strings"
)

// Tell retells a trace, one line a step.
func (m *Machine) Tell(trace []Action) []string {
	lines := make([]string, len(trace))
	w := m.Start()
	for i, a := range trace {
		m.apply(&w, a)
		lines[i] = fmt.Sprintf("%2d. %-46s %s", i+1, m.tell(a), m.show(&w))
	}
	return lines
}

var opNames = [ops]string{
	take: "takes", giveBack: "gives back", refund: "is to tell of a refund of", charge: "is charged", send: "sends", execute: "settle runs", receive: "gets the reply",
	refuse: "settle did not run", lose: "will never know", resend: "settle is sent again", runLate: "an overdue settle runs",
	crash: "crashes", fire: "watermark moves", change: "hears of another limit",
	useTurn: "uses its turn", leaveTurn: "leaves its turn", renewTurn: "renews its turn", tellTurn: "turn is told", wait: "time passes", edge: "time passes",
	expire: "the key is removed", forget: "the store loses its data", replicate: "the replica gets a copy",
	failover: "the replica takes over", jump: "the store's clock steps",
}

// tell says what happens.
func (m *Machine) tell(a Action) string {
	name := opNames[a.op]
	if a.op < runLate || a.op >= crash && a.op < wait {
		name = fmt.Sprintf("node %d: %s", a.node, name)
	}
	switch a.op {
	case take, giveBack, refund, charge:
		return fmt.Sprintf("%s %d", name, m.Costs[a.pick])
	case send:
		return name + " " + m.asks[a.pick].String()
	case jump:
		return fmt.Sprintf("%s by %s", name, seconds(m.Jumps[a.pick]))
	}
	return name
}

func (a Ask) String() string {
	var parts []string
	for _, n := range a.Needs {
		parts = append(parts, fmt.Sprintf("%d×%d", n.Count, n.Cost))
	}
	s := "needs [" + strings.Join(parts, " ") + "]"
	if a.Keep > 0 {
		s += ", keeps"
	}
	if a.Want > 0 {
		s += fmt.Sprintf(", wants %d", a.Want)
	}
	if a.Charged != 0 || a.Fallback != 0 {
		s += fmt.Sprintf(", charges %g", a.Charged+a.Fallback)
	}
	return s
}

// show is a world in one line.
func (m *Machine) show(w *World) string {
	s := "t=" + seconds(w.now-start)
	if w.skew != 0 {
		s += " clock=" + seconds(w.clock()-start)
	}
	g := m.present(w)
	s += fmt.Sprintf(" used=%.4g lent=%d debt=%.4g", g.Used, g.Lent, w.book.debts[0])
	for i := range w.nodes[:m.Nodes] {
		s += " | " + m.showNode(&w.nodes[i])
	}
	return s
}

func (m *Machine) showNode(n *Node) string {
	s := fmt.Sprint(n.tokens)
	if n.lease.InDoubt() {
		s += " marked"
	}
	if n.tokens > 0 && !n.alive() {
		s += " dead"
	}
	if n.owes+n.backs > 0 {
		s += fmt.Sprintf(" owes %d−%d", n.owes, n.backs)
	}
	if t := &n.turn; t.state != noTurn {
		s += fmt.Sprintf(" turn %d %s", t.cost, [...]string{standing: "standing", used: "used", abandoned: "abandoned"}[t.state])
	}
	if f := &n.flight; f.state != none {
		s += fmt.Sprintf(", %s: spent %d, returned %d, held %d", [...]string{sent: "sent", ran: "ran"}[f.state], f.spent, f.returned, f.held)
		if f.state == ran {
			s += fmt.Sprintf(", granted %d", f.reply.granted)
		}
	}
	return s
}

func seconds(us int64) string { return fmt.Sprintf("%gs", float64(us)/1e6) }
