package baseline

import (
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/lab/sim"
)

// staticFleet divides the limit among its nodes in advance. It costs nothing, and
// is right only if every node gets the same load.
type staticFleet struct{ nodes []*staticNode }

type staticNode struct {
	law law // the node's share

	mu       sync.Mutex
	accounts map[string]usage
}

func newStaticFleet(share law, nodes int) *staticFleet {
	f := &staticFleet{}
	for range nodes {
		f.nodes = append(f.nodes, &staticNode{law: share, accounts: map[string]usage{}})
	}
	return f
}

// Ask is part of sim.Subject.
func (f *staticFleet) Ask(node int, key string, cost int64) sim.Answer {
	now := time.Now().UnixNano()
	return sim.Answer{Allowed: f.nodes[node].take(now, key, cost), At: now}
}

func (n *staticNode) take(now int64, key string, cost int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	u := n.law.drain(n.accounts[key], now)
	if !n.law.fits(u, cost) {
		return false
	}
	u.used += float64(cost)
	n.accounts[key] = u
	return true
}

// Cost is part of sim.Subject: none.
func (f *staticFleet) Cost() sim.Cost { return sim.Cost{} }

// Close is part of sim.Subject.
func (f *staticFleet) Close() {}
