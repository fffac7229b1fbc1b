package modelcheck

import (
	"strings"
	"testing"
)

// departure is a world in which the protocol does not keep more than is promised.
type departure struct {
	name  string
	found string // the invariant that is broken
	steps int    // by which it is
	only  string
	Setup
}

func (s Setup) literal() Setup {
	s.Literal = true
	return s
}

// When one of these no longer fails, the protocol has become better, and more can
// be promised.
var departures = []departure{
	// A key that has expired is forgotten, with the window or the epoch that it was
	// of. After a step back both come again.
	{"a window comes again", "promise", 12, "promise", small(1, 2, 30, 0.5).jumping(-60).windowed(90).literal()},
	{"a lease epoch comes again", "promise", 18, "promise", small(2, 2, 60, 2).jumping(-240).literal()},
}

// What is left out of the promise is not kept, by the shortest way.
func TestDepartures(t *testing.T) {
	if raceDetector {
		t.Skip("takes long under the race detector, and nothing runs at the same time")
	}
	for _, d := range departures {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := &Search{Machine: NewMachine(d.Setup), Depth: d.steps, Only: d.only}
			r := search(t, s)
			if !strings.HasPrefix(r.Broken, d.found+":") {
				t.Errorf("broken is %q, was %q: if that is kept by now, it can be promised", r.Broken, d.found)
			}
			retell(t, s.Machine, r)
		})
	}
}
