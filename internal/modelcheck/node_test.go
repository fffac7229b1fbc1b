package modelcheck

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/slice"
)

// real is a node's slice as the syncer has it: never copied, never made anew.
type real struct {
	cell  slice.Cell
	lease slice.Lease
	dead  slice.Watermark
}

// follow does to the real slice what a step does to the model's.
func (r *real) follow(m *Machine, before, after *World, a Action) bool {
	n := &before.nodes[0]
	switch a.op {
	case take:
		_, ok := r.cell.Take(m.Costs[a.pick], &r.dead)
		return ok
	case giveBack:
		return r.lease.Return(&r.cell, m.Costs[a.pick], &r.dead)
	case charge:
		r.cell.Take(m.Costs[a.pick], &r.dead) // or it is to be told
	case send:
		if m.pickUp(n); n.owes+n.backs > 0 && m.ofAnotherWindow(before, n) {
			r.lease.Lapse(&r.cell)
		}
		return r.report(m, after.nodes[0].flight, a.pick)
	case receive:
		r.receive(m, before, n.flight)
	case refuse:
		r.lease.NotRun(&r.cell)
	case lose:
		r.lease.Lost()
	}
	r.dead.Pass(after.nodes[0].dead)
	return true
}

// report reports what the model reports, or nothing where it has nothing to say.
func (r *real) report(m *Machine, f Flight, ask uint8) bool {
	if r.lease.InDoubt() && (r.cell.Expired(&r.dead) || r.cell.Tokens() == 0) {
		r.lease.Lapse(&r.cell)
	}
	u := r.lease.Report(&r.cell, m.asks[ask].Keep)
	return u.Spent == f.spent && u.Returned == f.returned && u.Held == f.held && u.Tag.Epoch == f.tag.Epoch
}

func (r *real) receive(m *Machine, w *World, f Flight) {
	expiry, _ := m.deadline(w, f)
	if !f.marked && !expiry.After(slice.TickAt(w.now*1000)) {
		r.dead.Pass(expiry)
	}
	r.lease.Ran(&r.cell, slice.Grant{Dropped: f.reply.dropped, Granted: f.reply.granted, Tag: f.reply.tag}, expiry)
}

// A node whose cell is put away after each step and made again for the next one
// behaves like one that keeps it.
func TestANodeIsTheRealSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t, rapid.Bool().Draw(t, "windows"))
		s.Nodes, s.Faults.Crashes = 1, 0
		m, r := NewMachine(s), new(real)
		w := m.Start()
		for range rapid.IntRange(1, 100).Draw(t, "length") {
			a, next := pick(t, m, &w), w
			happens := m.apply(&next, a)
			if !happens && a.op != take && a.op != giveBack {
				continue
			}
			if r.follow(m, &w, &next, a) != happens {
				t.Fatalf("%s: the model says %t", m.tell(a), happens)
			}
			if happens {
				w = next
			}
			if n := &w.nodes[0]; n.tokens != r.cell.Tokens() || n.lease != r.lease || n.alive() == r.cell.Expired(&r.dead) {
				t.Fatalf("%s: the model has %+v, the node %+v and %d tokens", m.tell(a), *n, r.lease, r.cell.Tokens())
			}
		}
	})
}
