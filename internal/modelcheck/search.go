package modelcheck

import "strings"

// Search visits all worlds that a setup can lead to, in the order of their
// distance from the start: what it finds first, it finds by the shortest way.
type Search struct {
	*Machine
	Depth  int    // most steps from the start; 0 = until there is nothing new
	Worlds int    // stop at so many; 0 = never
	Only   string // look for breaks of this invariant alone; "" = of all
	Live   uint64 // ask one world in so many whether it is live, too; 0 = none

	steps   []step             // how each world was reached
	visited map[digest]float64 // the debt with which it was
	buffer  []Action
}

// step is the way to a world from the one before it.
type step struct {
	from   int32
	action Action
}

// Report is what a search has found.
type Report struct {
	Worlds int    // different ones
	Steps  int    // tried
	Depth  int    // of the last world
	Closed bool   // there are no others
	Broken string // the first invariant that was broken; "" if all were kept
	Trace  []Action
}

// Run searches.
func (s *Search) Run() (r Report) {
	s.visited, s.steps = map[digest]float64{}, nil
	first := s.Start()
	s.isNew(&first, s.digest(&first))
	var edge frontier
	edge.push(first, s.enter(step{from: -1}))
	for r.Depth = 0; edge.n > 0 && r.Broken == ""; r.Depth++ {
		if s.Depth > 0 && r.Depth == s.Depth || s.Worlds > 0 && len(s.visited) >= s.Worlds {
			break
		}
		edge = s.advance(&edge, &r)
	}
	r.Worlds, r.Closed = len(s.visited), edge.n == 0 && r.Broken == ""
	return r
}

// advance makes one more step from each world at the edge.
func (s *Search) advance(edge *frontier, r *Report) (next frontier) {
	for world, id := range edge.all {
		s.buffer = s.actions(world, s.buffer[:0])
		for _, a := range s.buffer {
			w := *world
			if !s.apply(&w, a) {
				continue
			}
			r.Steps++
			d := s.digest(&w)
			isNew := s.isNew(&w, d)
			if !isNew && s.broken == "" {
				continue
			}
			reached := s.enter(step{from: id, action: a})
			if r.Broken = s.judge(&w, d); r.Broken != "" {
				r.Trace = s.trace(reached)
				return next
			}
			if isNew {
				next.push(w, reached)
			}
		}
	}
	return next
}

// judge returns the invariant that a world breaks, of those that are looked for.
func (s *Search) judge(w *World, d digest) string {
	broken := s.check(w)
	if broken == "" && s.Live > 0 && d.a%s.Live == 0 {
		broken = s.stuck(w)
	}
	if s.Only != "" && !strings.HasPrefix(broken, s.Only+":") {
		return ""
	}
	return broken
}

// isNew notes that a world was reached, and reports whether it had not been.
// Of worlds that differ in their debt alone the one that owes more breaks the
// promise if any does, so one that owes less is not new.
func (s *Search) isNew(w *World, d digest) bool {
	debt, known := s.visited[d]
	if known && w.book.debts[0] <= debt {
		return false
	}
	s.visited[d] = w.book.debts[0]
	return true
}

// enter notes how a world was reached.
func (s *Search) enter(by step) int32 {
	s.steps = append(s.steps, by)
	return int32(len(s.steps) - 1)
}

// trace is the way to a world from the start.
func (s *Search) trace(id int32) []Action {
	if s.steps[id].from < 0 {
		return nil
	}
	return append(s.trace(s.steps[id].from), s.steps[id].action)
}
