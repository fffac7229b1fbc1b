package precheck

import (
	"fmt"
	"math"
	"strings"
)

// world is a small fleet whose floors all serve one key, its registry, and the
// ideal bucket of size whole that must cover every admission. Time goes in
// ticks. A node refreshes its registration each tick while it is up.
type world struct {
	whole Size
	now   int64
	ideal float64 // what the ideal bucket holds
	nodes []member
}

const (
	tick = offUnit
	ttl  = 2 * tick // of a registration
)

// member is one node of the world, and what it knows of the key's limiter.
// Nothing in it points to anything mutable, so a world is copied by copying its
// members.
type member struct {
	up         bool
	registered bool
	score      int64 // the last refresh of its registration
	from       int64 // floors are earned from then on
	until      int64 // it trusts its registration until then
	past       *past // its History
	fresh      int64 // its Fresh
	cell       bool  // it knows the key
	floor      Floor
}

func newWorld(nodes, up int, whole Size) world {
	w := world{whole: whole, ideal: whole.Cap, nodes: make([]member, nodes)}
	for i := range w.nodes {
		w.leave(&w.nodes[i])
		w.nodes[i].up = i < up
	}
	w.settle() // all who are up have full floors
	return w
}

// settle lets so much time pass that all floors are full.
func (w *world) settle() {
	for range 20 {
		w.tick()
	}
}

// silence makes the first n nodes, who know the key, lapse long ago.
func (w *world) silence(n int) {
	for i := range n {
		w.visit(&w.nodes[i])
		w.nodes[i].up = false
	}
	w.settle()
}

func (w *world) clone() world {
	c := *w
	c.nodes = append([]member(nil), w.nodes...)
	return c
}

func (m *member) history() *History {
	h := new(History)
	h.past.Store(m.past)
	return h
}

func (m *member) setM(now int64, n int) {
	h := m.history()
	h.Set(now, n)
	m.past = h.past.Load()
}

// asFresh runs f on the member's Fresh.
func (m *member) asFresh(f func(*Fresh)) {
	var x Fresh
	x.since.Store(m.fresh)
	f(&x)
	m.fresh = x.since.Load()
}

// tick lets time pass, and then the heartbeats.
func (w *world) tick() {
	w.now += tick
	w.ideal = min(w.whole.Cap, w.ideal+w.whole.Rate*tick)
	for i := range w.nodes {
		if m := &w.nodes[i]; m.up {
			w.heartbeat(m)
		}
	}
}

// heartbeat refreshes a registration. A new one makes the floors start again,
// empty, when it is one TTL old; until then they cannot be used.
func (w *world) heartbeat(m *member) {
	joined := !w.alive(m)
	m.registered, m.score = true, w.now
	m.setM(w.now, w.members())
	if joined {
		m.from = w.now + ttl
		m.asFresh(func(f *Fresh) { f.Start(m.from) })
	}
	m.until = w.now + ttl
}

// open reports whether the node may use its floors.
func (w *world) open(m *member) bool { return m.from <= w.now && w.now < m.until }

func (w *world) alive(m *member) bool { return m.registered && w.now-m.score < ttl }

func (w *world) members() (n int) {
	for i := range w.nodes {
		if w.alive(&w.nodes[i]) {
			n++
		}
	}
	return n
}

// leave ends a node's registration and its process: when it comes up again it
// knows nothing.
func (w *world) leave(m *member) {
	*m = member{}
	m.setM(w.now, 1)
}

// visit returns the node's floor of the key, which it makes at first use.
func (w *world) visit(m *member) *Floor {
	if !m.cell {
		m.asFresh(func(f *Fresh) {
			level, _ := f.Level(w.now, w.whole, m.history())
			m.floor.Start(level, w.now)
		})
		m.cell = true
	}
	m.floor.NotBefore(m.from)
	return &m.floor
}

func (w *world) take(m *member, n int64) bool {
	if !w.open(m) || !w.visit(m).Take(w.now, n, w.whole, m.history()) {
		return false
	}
	w.ideal -= float64(n)
	return true
}

// put takes one admission back, which gives the ideal bucket a token too.
func (w *world) put(m *member) {
	if m.floor.Put(1) {
		w.ideal = min(w.whole.Cap, w.ideal+1)
	}
}

func (w *world) drain(m *member) {
	for w.take(m, 1) {
		continue
	}
}

func (w *world) evict(m *member) {
	if !m.cell {
		return
	}
	if !m.floor.Full(w.now, w.whole, m.history()) {
		m.asFresh(func(f *Fresh) { f.Spoil(w.now) })
	}
	m.cell, m.floor = false, Floor{}
}

// act does one action of one node; there are acts of them.
func (w *world) act(i, what int) {
	m := &w.nodes[i]
	switch what {
	case 0:
		w.drain(m)
	case 1:
		w.take(m, 1)
	case 2:
		w.evict(m)
	case 3:
		m.up = !m.up // down: it falls silent, and its registration lapses
	case 4:
		w.leave(m)
	case 5:
		w.visit(m).Suspend(w.now + tick)
	case 6:
		w.visit(m).Owed(w.now, w.whole, m.history())
	case 7:
		w.put(m)
	}
}

const acts = 8

// check drains a copy of the world at one instant: were the ideal bucket to go
// below zero, the admissions of some interval would exceed its bound.
func (w *world) check() error {
	c := w.clone()
	for i := range c.nodes {
		c.nodes[i].floor.off = 0 // the end of a suspension must hold no surprise
		c.drain(&c.nodes[i])
	}
	if c.ideal < -1e-9 {
		return fmt.Errorf("floors exceed the ideal bucket by %g tokens in %v", -c.ideal, w)
	}
	return nil
}

// String tells worlds apart that may behave differently later.
func (w *world) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.6f", w.ideal)
	for i := range w.nodes {
		m := &w.nodes[i]
		fmt.Fprintf(&b, "|%t %t %d %d %d %d", m.up, m.registered, m.score-w.now, m.from-w.now, m.until-w.now, m.fresh-w.now)
		f := &m.floor
		fmt.Fprintf(&b, " %t %.6f %d %d %d ", m.cell, f.level, f.at-w.now, f.spent, int64(f.off)*offUnit-w.now)
		fmt.Fprint(&b, m.past.lost, m.past.segments)
	}
	return b.String()
}

func perTick(tokens float64) float64 { return tokens / tick }

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
