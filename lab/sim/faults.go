package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is one thing that goes wrong, or right again.
type Fault struct {
	At   time.Duration // since the start of the run, warm-up included
	Kind FaultKind
	Node int           // whose, counted among those that are there
	For  time.Duration // of Pause, Restart, Wipe and Stale
}

// FaultKind is what goes wrong.
type FaultKind uint8

// What goes wrong. Crash to Swallow concern one node, the rest everybody.
const (
	Crash     FaultKind = iota // the node is gone, and the store hears nothing of it
	Leave                      // the node ends in order
	Cut                        // its connections break, and it gets no new ones
	Hole                       // what it sends gets lost, and nothing comes back
	Pause                      // nothing moves on its link for a while, and it gets no requests
	Refuse                     // the store answers its next settle with LOADING
	CutBefore                  // the connection breaks before the store sees its next settle
	CutAfter                   // the connection breaks after the store ran it
	Swallow                    // the store runs it, and the reply never comes
	Join                       // a node more
	Mend                       // all links are well again
	Restart                    // the store is away for a while, and has its data still
	Wipe                       // the store is away for a while, and has lost its data
	Stale                      // a replica takes over that has heard nothing for a while
	faultKinds
)

var faultNames = [faultKinds]string{"crash", "leave", "cut", "hole", "pause", "refuse", "cutbefore", "cutafter",
	"swallow", "join", "mend", "restart", "wipe", "stale"}

func (k FaultKind) String() string { return faultNames[k] }

// lasts says whether a fault has a length.
func (k FaultKind) lasts() bool { return k == Pause || k >= Restart }

// ofNode says whether a fault concerns one node.
func (k FaultKind) ofNode() bool { return k <= Swallow }

// Faults are in the order of time.
type Faults []Fault

// losses is how often the store loses what it had acknowledged.
func (f Faults) losses() (n int) {
	for _, one := range f {
		if one.Kind == Wipe || one.Kind == Stale {
			n++
		}
	}
	return n
}

// String is what Set reads.
func (f *Faults) String() string {
	parts := make([]string, len(*f))
	for i, one := range *f {
		parts[i] = one.String()
	}
	return strings.Join(parts, ",")
}

// String is "kind@time", with ":node" where it is one node's and "+length" where it lasts.
func (f Fault) String() string {
	text := f.Kind.String()
	if f.Kind.ofNode() {
		text += ":" + strconv.Itoa(f.Node)
	}
	text += "@" + f.At.String()
	if f.Kind.lasts() {
		text += "+" + f.For.String()
	}
	return text
}

// Set reads "cut:3@30s,mend@40s,wipe@50s+2s".
func (f *Faults) Set(s string) error {
	*f = nil
	if s == "" {
		return nil
	}
	for text := range strings.SplitSeq(s, ",") {
		one, err := readFault(text)
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		*f = append(*f, one)
	}
	f.sort()
	return nil
}

func (f Faults) sort() {
	slices.SortStableFunc(f, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
}

func readFault(text string) (f Fault, err error) {
	wrong := fmt.Errorf("allowed KIND[:NODE]@TIME[+LENGTH] with KIND one of %s", strings.Join(faultNames[:], ", "))
	what, when, ok := strings.Cut(text, "@")
	name, node, named := strings.Cut(what, ":")
	kind := slices.Index(faultNames[:], name)
	if !ok || kind < 0 {
		return f, wrong
	}
	f.Kind = FaultKind(kind)
	at, length, lasts := strings.Cut(when, "+")
	if f.At, err = time.ParseDuration(at); err != nil || f.At < 0 || named != f.Kind.ofNode() || lasts != f.Kind.lasts() {
		return f, wrong
	}
	if named {
		if f.Node, err = strconv.Atoi(node); err != nil || f.Node < 0 {
			return f, wrong
		}
	}
	if lasts {
		if f.For, err = time.ParseDuration(length); err != nil || f.For <= 0 {
			return f, wrong
		}
	}
	return f, nil
}
