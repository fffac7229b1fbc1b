package baseline

import (
	"math"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/lab/sim"
)

// sliceShare is the part of a limit that a node fetches at once.
const sliceShare = 0.01

// sliceFleet prepays: a node takes a slice out of the central account and
// admits from it. Nobody gives back and nobody is asked to, so what a node does not
// use by the end of the slice's life is lost.
type sliceFleet struct {
	*store
	size  int64 // tokens of a slice
	nodes []*sliceNode
}

type sliceNode struct {
	mu    sync.Mutex
	cells map[string]*sliceCell
}

// sliceCell is what a node holds of one key. All fields are under the node's lock.
type sliceCell struct {
	tokens int64
	until  int64  // when they are lost, ns
	fetch  *fetch // the one under way, or nil
}

// fetch is one trip to the store for a slice. Requests that come meanwhile
// wait for it too; its results are set before done is closed.
type fetch struct {
	need    int64 // tokens that it is no use without
	done    chan struct{}
	granted int64
	at      int64 // when the store executed it, ns
}

func newSliceFleet(l law, nodes int, rtt func() time.Duration) *sliceFleet {
	f := &sliceFleet{store: newStore(l, rtt), size: max(1, int64(l.burst*sliceShare))}
	for range nodes {
		f.nodes = append(f.nodes, &sliceNode{cells: map[string]*sliceCell{}})
	}
	return f
}

// Ask is part of sim.Subject.
func (f *sliceFleet) Ask(node int, key string, cost int64) sim.Answer {
	n := f.nodes[node]
	answer, trip, own := n.ask(key, cost)
	if trip != nil {
		f.blocked.Add(1)
	}
	for trip != nil {
		if own {
			f.fetch(n, key, trip)
		} else {
			<-trip.done
		}
		if trip.granted == 0 && cost >= trip.need {
			return sim.Answer{Blocked: true, At: trip.at}
		}
		answer, trip, own = n.ask(key, cost)
		answer.Blocked = true
	}
	return answer
}

// ask admits from the slice, or else returns the fetch to wait for, and whether
// it is the caller who has to make it.
func (n *sliceNode) ask(key string, cost int64) (answer sim.Answer, trip *fetch, own bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, c := time.Now().UnixNano(), n.cell(key)
	if now < c.until && c.tokens >= cost {
		c.tokens -= cost
		return sim.Answer{Allowed: true, At: now}, nil, false
	}
	own = c.fetch == nil
	if own {
		c.fetch = &fetch{need: cost, done: make(chan struct{})}
	}
	return sim.Answer{}, c.fetch, own
}

// cell is the node's cell of a key. The node's lock is held.
func (n *sliceNode) cell(key string) *sliceCell {
	c := n.cells[key]
	if c == nil {
		c = &sliceCell{}
		n.cells[key] = c
	}
	return c
}

// fetch makes the trip, and puts what it brings on the slice.
func (f *sliceFleet) fetch(n *sliceNode, key string, trip *fetch) {
	var until int64
	f.call(1, func(now int64) {
		trip.at = now
		trip.granted = f.grant(now, key, trip.need)
		until = now + int64(f.law.life(now))
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.cell(key)
	if time.Now().UnixNano() >= c.until {
		c.tokens = 0
	}
	if trip.granted > 0 {
		c.tokens += trip.granted
		c.until = until
	}
	c.fetch = nil
	close(trip.done)
}

// grant takes a slice out of the account, or what there is of one; nothing if
// that is less than what is needed. The store's lock is held.
func (f *sliceFleet) grant(now int64, key string, need int64) int64 {
	u := f.account(now, key)
	if !f.law.fits(u, need) {
		return 0
	}
	whole := int64(math.Floor(f.law.free(u)))
	g := max(need, min(f.size, whole))
	u.used += float64(g)
	f.put(key, u)
	return g
}

// Close is part of sim.Subject. Calls under way end by themselves.
func (f *sliceFleet) Close() {}
