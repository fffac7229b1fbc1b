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

// member is one node of the world. Nothing in it points to anything mutable, so
// a world is copied by copying its members.
type member struct {
	up         bool
	registered bool
	since      int64 // start of the registration
	score      int64 // its last refresh
	serving    bool  // the registration is old enough for a floor
	past       *past // its History
	fresh      int64 // its Fresh
	cell       bool  // it knows the key
	floor      Floor
}

func newWorld(nodes, up int, whole Size) world {
	w := world{whole: whole, ideal: whole.Cap, nodes: make([]member, nodes)}
	for i := range up {
		w.nodes[i].up = true
	}
	for range 8 { // all who are up have full floors
		w.tick()
	}
	return w
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
		} else if m.serving && w.now-m.score >= ttl {
			w.stop(m) // its timer: the registration could not be refreshed
		}
	}
}

func (w *world) heartbeat(m *member) {
	if !w.alive(m) {
		w.stop(m)
		m.registered, m.since = true, w.now
	}
	m.score = w.now
	if w.now-m.since < ttl {
		return
	}
	if !m.serving {
		m.serving = true
		m.asFresh(func(f *Fresh) { f.Start(w.now) })
	}
	m.setM(w.now, w.members())
}

func (w *world) alive(m *member) bool { return m.registered && w.now-m.score < ttl }

func (w *world) members() (n int) {
	for i := range w.nodes {
		if w.alive(&w.nodes[i]) {
			n++
		}
	}
	return n
}

func (w *world) stop(m *member) {
	m.serving = false
	m.asFresh((*Fresh).Stop)
	m.setM(w.now, 0)
}

func (w *world) leave(m *member) {
	m.up, m.registered = false, false
	w.stop(m)
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
	return &m.floor
}

func (w *world) take(m *member, n int64) bool {
	if !w.visit(m).Take(w.now, n, w.whole, m.history()) {
		return false
	}
	w.ideal -= float64(n)
	return true
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
	}
}

const acts = 6

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
		fmt.Fprintf(&b, "|%t %t %d %d %t %d %t %.6f %d %d", m.up, m.registered, m.since-w.now, m.score-w.now,
			m.serving, m.fresh-w.now, m.cell, m.floor.level, m.floor.at-w.now, int64(m.floor.off)*offUnit-w.now)
		if m.past != nil {
			fmt.Fprint(&b, m.past.lost, m.past.segments)
		}
	}
	return b.String()
}

func perTick(tokens float64) float64 { return tokens / tick }

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
