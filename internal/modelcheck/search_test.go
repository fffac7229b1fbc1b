package modelcheck

import (
	"flag"
	"testing"
	"time"
)

var (
	depthFlag = flag.Int("depth", 0, "search all worlds to this depth; 0 = to that of each, -1 = until there is nothing new")
	worldFlag = flag.Int("worlds", 0, "stop a search at so many worlds; 0 = never")
)

// search searches a world and reports how.
func search(t *testing.T, s *Search) Report {
	t.Helper()
	begin := time.Now()
	r := s.Run()
	until := ""
	if r.Closed {
		until = ", there are no others"
	}
	t.Logf("%d worlds, %d steps, depth %d, %.1fs%s", r.Worlds, r.Steps, r.Depth, time.Since(begin).Seconds(), until)
	return r
}

// retell logs how an invariant was broken.
func retell(t *testing.T, m *Machine, r Report) {
	t.Helper()
	t.Log(r.Broken)
	for _, line := range m.Tell(r.Trace) {
		t.Log(line)
	}
}

func (w world) search() *Search {
	s := &Search{Machine: NewMachine(w.Setup), Depth: w.depth, Worlds: *worldFlag, Live: 8}
	switch {
	case *depthFlag > 0:
		s.Depth, s.Live = *depthFlag, 1
	case *depthFlag < 0:
		s.Depth, s.Live = 0, 1
	case raceDetector:
		s.Depth = min(s.Depth, 14) - 4
	}
	return s
}

// The protocol keeps every promise in every world that a small fleet can reach.
func TestEveryHistoryOfSmallWorlds(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name+"/bucket", w.isKept)
		w.Setup = w.windowed(90)
		t.Run(w.name+"/window", w.isKept)
	}
}

func (w world) isKept(t *testing.T) {
	if *depthFlag == 0 {
		t.Parallel() // deep searches need the memory for one at a time
	}
	s := w.search()
	if r := search(t, s); r.Broken != "" {
		retell(t, s.Machine, r)
		t.Error("the protocol is broken")
	}
}

// A search of worlds in which something cannot happen says nothing about it. Of
// all that can, only what a flaw permits does not, and what takes a drawn time.
func TestEverythingHappens(t *testing.T) {
	var seen [ops]bool
	for _, w := range worlds {
		s := &Search{Machine: NewMachine(w.Setup), Depth: 8}
		s.Run()
		for _, by := range s.steps[1:] {
			seen[by.action.op] = true
		}
	}
	for op, happened := range seen {
		if !happened && Op(op) != resend && Op(op) != edge {
			t.Errorf("nowhere %s", opNames[op])
		}
	}
}
