package modelcheck

import (
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// Turns: what a node does for a caller that waits. The store has lent it tokens ahead, which
// it may spend from a moment on, while their lease lasts.

// Turn is a node's place in the store.
type Turn struct {
	state turnState
	cost  int64
	tag   slice.Tag
	goes  int64 // µs, when it may be used
	ends  int64 // µs, the last moment at which it may be used
}

// turnState is how far a turn has come.
type turnState uint8

const (
	noTurn    turnState = iota
	standing            // its caller waits for it
	used                // it was used, and the store is to be told
	abandoned           // its caller has left, and the store is to be told
)

// waits reports whether an ask is for a turn.
func (a *Ask) waits() bool { return len(a.Needs) > 0 && a.Needs[len(a.Needs)-1].Count == 0 }

// reserved returns the tokens that a settle has lent for a turn.
func reserved(r slice.Rule, u *slice.Usage, g *slice.Grant) int64 {
	last := len(u.Needs) - 1
	if last < 0 || u.Needs[last].Count > 0 || g.Admitted[last] == 0 || g.Used <= float64(r.Burst) {
		return 0
	}
	return u.Needs[last].Cost
}

// stand takes over a turn from a reply.
func (m *Machine) stand(w *World, n *Node, f Flight) {
	if f.reply.turn > 0 {
		n.turn = Turn{state: standing, cost: f.reply.turn, tag: f.reply.tag}
		m.place(&n.turn, w.now+f.reply.goes, f.sentAt, f.reply.life)
	}
}

// place notes when a turn may be used.
func (m *Machine) place(t *Turn, goes, sentAt, life int64) {
	_, t.ends = m.deadlineFrom(sentAt, life)
	t.goes = goes
	if m.Flaw == TurnAtOnce {
		t.goes = 0
	}
}

// until returns how long a turn waits for the account to drain to its limit.
func until(r slice.Rule, g *slice.Grant) int64 {
	if g.Used <= float64(r.Burst) {
		return 0
	}
	return slice.RetryAfter(r, *g, 0).Microseconds()
}

// useTurn lets the caller go.
func (m *Machine) useTurn(w *World, n *Node) bool {
	t := &n.turn
	if w.now < t.goes || w.now > t.ends && m.Flaw != TurnOutlivesLease {
		return false
	}
	t.state = used
	m.admit(w, t.cost)
	return true
}

// renewTurn lends the tokens anew. Without a reply nobody can say which lease they belong to:
// the turn is over, and never told of.
func (m *Machine) renewTurn(w *World, n *Node, lost bool) {
	t := &n.turn
	g := m.report(w, n, slice.Usage{Tag: t.tag, Held: t.cost})
	if g.Dropped || lost && m.Flaw != TurnInDoubt {
		*t = Turn{}
		return
	}
	if lost {
		return
	}
	t.tag = g.Tag
	m.place(t, min(t.goes, w.now+until(m.Rules[n.rule], &g)), w.now, g.Life)
}

// tellTurn ends a turn in the store.
func (m *Machine) tellTurn(w *World, n *Node) {
	u := slice.Usage{Tag: n.turn.tag, Spent: n.turn.cost}
	if n.turn.state == abandoned {
		u.Spent, u.Returned = 0, n.turn.cost
	}
	n.turn = Turn{}
	m.report(w, n, u)
}

// report settles what a node says of its turn, at once: that it runs late, or never, is that
// the node says it late or never.
func (m *Machine) report(w *World, n *Node, u slice.Usage) slice.Grant {
	return m.settleKey(w, m.Rules[n.rule], &u, 0)
}

// inTurn returns what a node may spend in its turn, or is on the way back.
func (m *Machine) inTurn(w *World, n *Node, now slice.Tag) int64 {
	switch t := &n.turn; {
	case t.state == standing && w.now <= t.ends:
		return t.cost
	case t.state == standing || t.state == abandoned: // it may be given back yet
		return m.returning(w, &Flight{state: sent, tag: t.tag, returned: t.cost}, now)
	}
	if f := &n.flight; f.state == ran && f.reply.turn > 0 {
		if _, latest := m.deadline(w, *f); w.now <= latest {
			return f.reply.turn
		}
	}
	return 0
}

// turnActions appends what may happen to a turn.
func (m *Machine) turnActions(w *World, i uint8, to []Action) []Action {
	switch w.nodes[i].turn.state {
	case standing:
		to = append(to, Action{op: useTurn, node: i}, Action{op: leaveTurn, node: i}, Action{op: renewTurn, node: i})
		if w.left.Lost > 0 {
			to = append(to, Action{op: renewTurn, node: i, pick: 1})
		}
	case used, abandoned:
		to = append(to, Action{op: tellTurn, node: i})
	}
	return to
}

// addTurn adds a turn to the digest.
func (m *Machine) addTurn(d *digest, w *World, t *Turn) {
	d.int(int64(t.state)<<32 | t.cost)
	if t.state == noTurn {
		return
	}
	m.addTag(d, w, t.tag)
	if t.state == standing {
		d.int(max(t.goes-w.now, 0))
		d.int(max(t.ends-w.now, -1))
	}
}

// settleTurns is the account's settle with a rule about turns left out.
func (m *Machine) settleTurns(a *ledger.Account, clock int64, r slice.Rule, u slice.Usage) (slice.Grant, bool) {
	last := len(u.Needs) - 1
	if last < 0 || u.Needs[last].Count > 0 || r.Window > 0 {
		return a.Settle(clock, r, u)
	}
	if m.Flaw == TurnUnlent {
		g, wrote := a.Settle(clock, r, u)
		a.Young -= float64(reserved(r, &u, &g))
		return g, wrote
	}
	cost := u.Needs[last].Cost
	u.Needs = u.Needs[:last]
	g, wrote := a.Settle(clock, r, u)
	g.Admitted = append(g.Admitted, 0)
	if g.Used+float64(cost) > 2*float64(r.Burst) {
		return g, wrote
	}
	b := *a
	if !b.Stored {
		b = ledger.Account{Stored: true, At: max(clock, a.At)}
	}
	_, _ = b.Settle(clock, r, slice.Usage{Charged: 0x1p-40}) // brings it to now
	b.Used = g.Used + float64(cost)
	g.Used, g.Admitted[last] = b.Used, 1
	if g.Used > float64(r.Burst) {
		b.Young += float64(cost)
		g.Lent += cost
	}
	*a = b
	return g, true
}
