package modelcheck

import (
	"github.com/hybridlimit/hybrid/slice"
)

// Machine makes the steps of worlds of one setup. It is not safe for
// concurrent use.
type Machine struct {
	Setup
	asks []Ask      // those of the setup, and those that ask for one cost each
	wide slice.Rule // the limit of the promise
	some int64      // so many tokens and more are the same when they are reported in vain

	// The real cell and watermark of the node whose step is made.
	cell slice.Cell
	dead slice.Watermark

	broken string // the invariant that the last step broke
	total  int64  // tokens admitted in all steps
}

// NewMachine returns a machine for the worlds of a setup.
func NewMachine(s Setup) *Machine {
	m := &Machine{Setup: s, wide: s.widest()}
	if s.Nodes > maxNodes || s.Faults.Losses+s.Faults.Failovers+s.Faults.Jumps > maxLeeway {
		panic("the setup is too large")
	}
	m.some = 1
	for _, a := range s.Asks {
		m.asks = append(m.asks, a.complete())
		if a.Keep < all {
			m.some = max(m.some, a.Keep+1)
		}
	}
	return m
}

// complete fills in what a settle has to say.
func (a Ask) complete() Ask {
	a.Least, a.Unit, a.Divisor = max(a.Least, 1), max(a.Unit, 1), max(a.Divisor, 1)
	return a
}

// Start is the world before anything has happened.
func (m *Machine) Start() World {
	w := World{now: start, peak: start, left: m.Faults}
	w.book.window = m.windowOf(start)
	w.book.newest = w.book.window
	return w
}

// burst is B of the promise.
func (m *Machine) burst() float64 { return float64(m.wide.Burst) }

// rate is r of the promise, in tokens per µs; a window does not refill.
func (m *Machine) rate() float64 {
	if m.wide.Window > 0 {
		return 0
	}
	return m.wide.Rate
}

// windowOf numbers windows; 0 for a token bucket.
func (m *Machine) windowOf(us int64) int64 {
	if m.wide.Window == 0 {
		return 0
	}
	return us / m.wide.Window
}

// pickUp makes the machine's cell and watermark those of a node. A grant of one
// token more, which is taken at once, gives an empty cell its expiry, too.
func (m *Machine) pickUp(n *Node) {
	m.cell, m.dead = slice.Cell{}, slice.Watermark{}
	if n.lease.Holds() {
		var l slice.Lease
		l.Report(&m.cell, 0)
		l.Ran(&m.cell, slice.Grant{Granted: n.tokens + 1, Tag: slice.Tag{Epoch: 1}}, n.expiry)
		m.cell.Take(1, &m.dead)
	}
	m.dead.Pass(n.dead)
}

// putDown takes what the cell and the watermark contain back into the node.
func (m *Machine) putDown(n *Node) {
	n.tokens, n.dead = m.cell.Tokens(), m.dead.Now()
	if m.cell.Tokens() > 0 && !m.ends(n.expiry) {
		panic("the cell does not end when the node thinks")
	}
}

// ends reports whether the cell's expiry is this tick.
func (m *Machine) ends(t slice.Tick) bool {
	return m.cell.Left(int64(t)*int64(slice.TickLength)) == 0
}
