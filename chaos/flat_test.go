package chaos

import "fmt"

// Goroutines and connections of a node, beyond those of a calm, while the store
// is away and after it is back.
const (
	mostGoroutines = 40 // per node
	mostConns      = 20 // per node: the client's default pool on two processors
	leftGoroutines = 4  // per node
	ownConns       = 8  // of the test itself
)

// peak is what was needed at most.
type peak struct{ goroutines, connections int }

func (o *outcome) peak(in func(sample) bool) (p peak) {
	for _, s := range o.samples {
		if in(s) {
			p.goroutines, p.connections = max(p.goroutines, s.goroutines), max(p.connections, s.connections)
		}
	}
	return p
}

// peaks are those of the calm, of the rest of the run, and what was left at the end.
func (o *outcome) peaks() (calm, fault, end peak) {
	calm = o.peak(func(s sample) bool { return s.at < o.began })
	fault = o.peak(func(s sample) bool { return s.at >= o.began })
	if n := len(o.samples); n > 0 {
		end = peak{o.samples[n-1].goroutines, o.samples[n-1].connections}
		for _, s := range o.samples[max(0, n-5):] { // the least of the last: samples meet calls under way
			end.goroutines, end.connections = min(end.goroutines, s.goroutines), min(end.connections, s.connections)
		}
	}
	return calm, fault, end
}

// leaks: goroutines and connections are bounded during a fault, and what they
// were before it when it is over.
func leaks(o *outcome) (bad []string) {
	calm, fault, end := o.peaks()
	if o.absent {
		calm = o.idle
	}
	if calm.goroutines == 0 {
		return []string{"nothing was measured in the calm"}
	}
	if most := calm.goroutines + mostGoroutines*o.nodes; fault.goroutines > most {
		bad = append(bad, fmt.Sprintf("%d goroutines, in the calm %d, at most %d expected", fault.goroutines, calm.goroutines, most))
	}
	if most := calm.goroutines + leftGoroutines*o.nodes; end.goroutines > most && !o.absent {
		bad = append(bad, fmt.Sprintf("%d goroutines are left, in the calm %d", end.goroutines, calm.goroutines))
	}
	if most := mostConns * o.nodes; fault.connections > most {
		bad = append(bad, fmt.Sprintf("%d connections, in the calm %d, at most %d expected", fault.connections, calm.connections, most))
	}
	if most := o.connsAfter + o.nodes + ownConns; o.clientsAfter > most {
		bad = append(bad, fmt.Sprintf("the server has %d clients, before %d, and the fleet counts %d connections", o.clientsAfter, o.clientsBefore, o.connsAfter))
	}
	return bad
}
