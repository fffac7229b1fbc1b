package key

import "github.com/hybridlimit/hybrid/slice"

// reclaim brings tokens back that sit in other nodes' slices while a request is refused
// for want of them. The refused node publishes a request to release them; nodes
// that hold slices read those with their sync, and return what they do not use.
//
// A return is an operation, which the holder's requests must have paid for. Those of a
// node that fell silent have not. So a node that is refused again saves: it denies
// the next try from memory, and sends what that has saved along with its request. One
// holder takes it, for one return.
type reclaim struct {
	requestedAt int64 // ns, when this node last asked for a release; 0: never
	releasedFor int64 // µs of the store, the newest request that this node has followed
}

// request asks for a release if the account is scarce: a cost was refused although
// the tokens exist, and more is out on lease than polling alone accounts for.
func (s *State) request(t *Step, cost int64, st *slice.Settle) {
	g, interval := &st.Grant, s.pollInterval(t)
	usual := t.Plan.ratePerNano() * float64(interval)
	if st.Rule.Window > 0 {
		usual = 0
	}
	usual = min(usual, float64(st.Rule.Burst-cost)) // if more is lent, no refill makes room
	free := float64(st.Rule.Burst) - g.Used
	if free+float64(g.Lent) < float64(cost) || float64(g.Lent) <= usual {
		return
	}
	r, pause := &s.scarce, max(t.Timing.SyncInterval, interval)
	if r.requestedAt != 0 && t.Now-r.requestedAt < pause {
		return
	}
	if again := r.requestedAt != 0 && t.Now-r.requestedAt < longAgo*pause; again && s.budget.covers() {
		s.budget.operations--
		t.Paid = true
	} else if again {
		s.poll.stretch(t.Now, interval/2)
	}
	r.requestedAt = t.Now
	t.Scarce = cost
}

// longAgo is after how many pauses a refusal is the first one again.
const longAgo = 8

// Release returns what this node does not need of a scarce account, for a request that
// was made at a moment of the store's clock; or everything, if that is less than the
// cost which was refused and this node hands out smaller ones. In a window the cost
// does not matter: what is kept too long is lost. claimed says that the payment which came
// with the request is this node's.
func (s *State) Release(t *Step, m slice.Mark, claimed bool) {
	if t.Retired || s.inflight.busy() || !s.hold.lease.Holds() || m.At <= s.scarce.releasedFor {
		return
	}
	s.count(t)
	tokens, keep := t.Cell.Tokens(), s.needed(t)
	if tokens-keep < m.Cost && (m.Cost > s.demand.unit || t.Plan.Rule.Window > 0) {
		keep = 0
	}
	if claimed {
		s.budget.add(1)
	}
	if tokens > keep && m.Paid && !s.budget.covers() {
		t.Unpaid = true
		return
	}
	s.scarce.releasedFor = m.At
	if tokens > keep && s.attempt(t, purpose{kind: giveBack, keep: keep}) {
		t.Tally.Reclaimed += tokens - keep
	}
}

// needed returns what a holder may keep of a scarce account: what it would be lent if the
// account were exhausted, while it has use for it. What is left of a window at its
// end is lost: there, it is what the next sync interval needs.
func (s *State) needed(t *Step) int64 {
	switch {
	case t.Plan.Rule.Window > 0:
		return int64(s.demand.tokens.over(t.Timing.SyncInterval, t.Plan.horizon))
	case s.demand.attempts == 0 && t.Now-s.inflight.sentAt > s.pollInterval(t):
		return 0
	}
	return s.pollGoal(t)
}
