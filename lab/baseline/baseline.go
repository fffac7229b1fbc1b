// Package baseline holds the schemes that the library is compared with in the
// lab: each as it is usually built, fair to what it is good at, and on virtual
// time. They are for experiments only.
//
//	exact         one central account; every request makes a round trip
//	static        each of N nodes enforces a limit of its own of 1/N, and asks nobody
//	fixed slices  a node fetches 1 % of the limit when it has nothing left, and never gives back
//	post-paid     a node counts, and synchronises its counts each interval d
//
// Store and nodes share one clock, and the store loses nothing: what the schemes
// do wrong here, they do on a good day.
package baseline

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// Kind is a scheme. It is comparable; its zero value is Exact.
type Kind struct {
	scheme scheme
	every  time.Duration // interval of PostPaid
}

type scheme int

const (
	exact scheme = iota
	static
	fixedSlices
	postPaid
)

// The schemes without a setting; PostPaid has one.
var (
	Exact       = Kind{scheme: exact}
	Static      = Kind{scheme: static}
	FixedSlices = Kind{scheme: fixedSlices}
)

// PostPaid counts first and tells the store each interval, which must be above 0.
func PostPaid(every time.Duration) Kind {
	return Kind{scheme: postPaid, every: every}
}

// All lists the schemes as they are compared: with four intervals of PostPaid.
func All() []Kind {
	return []Kind{Exact, Static, FixedSlices, PostPaid(10 * time.Millisecond),
		PostPaid(50 * time.Millisecond), PostPaid(100 * time.Millisecond), PostPaid(time.Second)}
}

// Name is what readers call the scheme, for example "post-paid, 100 ms".
func (k Kind) Name() string {
	switch k.scheme {
	case static:
		return "static limit/N"
	case fixedSlices:
		return "fixed 1 % slices"
	case postPaid:
		return "post-paid, " + spaced(k.every)
	}
	return "exact, every request"
}

// spaced writes whole seconds and milliseconds with a space before the unit.
func spaced(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%g ms", d.Seconds()*1000)
}

// String is what Set reads.
func (k Kind) String() string {
	if k.scheme == postPaid {
		return "postpaid:" + k.every.String()
	}
	return [...]string{exact: "exact", static: "static", fixedSlices: "slices"}[k.scheme]
}

// Set reads "exact", "static", "slices" or "postpaid:INTERVAL".
func (k *Kind) Set(s string) error {
	for _, known := range []Kind{Exact, Static, FixedSlices} {
		if s == known.String() {
			*k = known
			return nil
		}
	}
	text, ok := strings.CutPrefix(s, "postpaid:")
	every, err := time.ParseDuration(text)
	if !ok || err != nil || every <= 0 {
		return errors.New("allowed exact, static, slices or postpaid:INTERVAL")
	}
	*k = PostPaid(every)
	return nil
}

// Start starts the scheme for an experiment: an Experiment.Subject.
func (k Kind) Start(s sim.Setup) sim.Subject {
	return New(k, s.Nodes, s.Limit, s.Trip)
}

// New starts a fleet of nodes that share the limit for each key. A round trip
// to the store takes as long as rtt says, half of it each way; rtt is called
// concurrently.
func New(k Kind, nodes int, limit hybrid.Limit, rtt func() time.Duration) sim.Subject {
	l := newLaw(limit)
	switch k.scheme {
	case static:
		return newStaticFleet(l.share(nodes), nodes)
	case fixedSlices:
		return newSliceFleet(l, nodes, rtt)
	case postPaid:
		return newPostPaidFleet(l, nodes, rtt, k.every)
	}
	return &exactFleet{store: newStore(l, rtt)}
}
