package sim

import "math"

// sums is the part of the figures that grows with each judged request.
type sums struct {
	asked  int64
	nodes  []int64 // tokens admitted, by node
	strata []tally
	keys   *population
}

// tally is the sums of one stratum of the keys.
type tally struct {
	requests, blocked, policy, denied, falsely int64
	delay                                      int64 // ns
	windows                                    []Window
}

func newSums(e Experiment, keys *population) sums {
	s := sums{nodes: make([]int64, e.Nodes), strata: make([]tally, len(keys.strata)), keys: keys}
	for i := range s.strata {
		s.strata[i].windows = e.emptyWindows()
	}
	return s
}

func (e Experiment) emptyWindows() (windows []Window) {
	for _, s := range e.stretches() {
		if s.window >= 0 {
			windows = append(windows, Window{From: s.from, Aside: s.aside})
		}
	}
	return windows
}

// add counts a request. falsely says whether a denial was false.
func (s *sums) add(r *request, falsely bool) {
	s.asked++
	if r.stretch.window < 0 {
		return
	}
	t := &s.strata[s.keys.stratumOf(r.key)]
	t.requests++
	t.blocked += one(r.blocked)
	t.policy += one(r.policy)
	t.denied += one(!r.allowed)
	t.falsely += one(falsely)
	t.delay += r.delay
	admitted := r.cost * one(r.allowed)
	w := &t.windows[r.stretch.window]
	w.Offered += r.cost
	w.Admitted += admitted
	w.Ideal += r.cost * one(r.ideal)
	for int(r.node) >= len(s.nodes) { // it joined later
		s.nodes = append(s.nodes, 0)
	}
	s.nodes[r.node] += admitted
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// total puts the sums into the figures.
func (s *sums) total(f *Figures) {
	f.Asked, f.Nodes, f.Windows = s.asked, s.nodes, f.Experiment.emptyWindows()
	for i := range s.strata {
		t := &s.strata[i]
		all := s.keys.scale(i)
		f.Requests += all(t.requests)
		f.Blocked += all(t.blocked)
		f.Policy += all(t.policy)
		f.Denied += all(t.denied)
		f.FalseDenials += all(t.falsely)
		f.Delay += all(t.delay)
		for n, w := range t.windows {
			f.Windows[n].Offered += all(w.Offered)
			f.Windows[n].Admitted += all(w.Admitted)
			f.Windows[n].Ideal += all(w.Ideal)
		}
	}
	for _, w := range f.Windows {
		if !w.Aside {
			f.Offered += w.Offered
			f.Admitted += w.Admitted
			f.Ideal += w.Ideal
		}
	}
}

// scale tells what a number of a stratum's sample is for the whole of it.
func (p *population) scale(stratum int) func(int64) int64 {
	weight := p.strata[stratum].weight
	return func(n int64) int64 { return int64(math.Round(float64(n) * weight)) }
}
