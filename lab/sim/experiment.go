package sim

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Experiment is one run: who asks for what, of whom, and what goes wrong. It is
// plain data that a command line can name; see [Experiment.Command]. The zero
// value of a field is a default.
type Experiment struct {
	Limit     hybrid.Limit         // of each key; default 1000 per minute
	Accuracy  hybrid.Accuracy      // of the library
	OnFailure hybrid.FailurePolicy // of the library
	Sync      time.Duration        // Options.SyncInterval; default the library's
	Timeout   time.Duration        // Options.StoreTimeout; default the library's
	Nodes     int                  // default 20
	Servers   int                  // Options.Servers; default 0
	Trip      Trip                 // to the store and back; default 600 µs
	Store     Store                // default Memory

	Keys     int      // default 1
	Skew     float64  // of the keys' popularity: key number k has a share of k^-Skew
	Sample   float64  // requests per second that are made for each octave of keys' ranks; 0: all are made
	Cost     int64    // tokens per request; default 1
	Mixed    bool     // costs are anything from 1 to Cost, all alike
	Arrivals Arrivals // default Poisson
	Load     float64  // tokens asked for, as a multiple of the limits of all keys
	Rate     float64  // requests per second in all; wins over Load
	Place    Place    // the node that a request goes to; default Uniform
	Scenes   Scenes   // if any, the measured part plays these in turn, instead of Load and Place
	Quiet    bool     // nobody asks anything during the warm-up
	Refunds  Refunds  // what is given back later
	Charges  Charges  // what turns out to cost more later
	Aside    Aside    // what callers do besides
	MaxKeys  int      // Options.MaxKeys; default the library's

	Still  time.Duration // the first part of the warm-up, in which nobody asks anything
	Warm   time.Duration // default: five seconds, in which nodes find each other, and one fill time
	Span   time.Duration // the measured part; default Fills
	Fills  float64       // Span in fill times; default 15
	Faults Faults        // what goes wrong, and when
	Seed   uint64        // of everything that is random here

	// Subject makes what the experiment is about; nil is the library. It has no flag.
	Subject func(Setup) Subject

	flaw flaw // what nodes do wrong, to see that it is found
}

// flaw is what a node does wrong with what becomes known later.
type flaw uint8

const (
	sound          flaw = iota
	forgetsCharges      // it tells nobody of them
	refundsTwice        // it counts each refund twice
)

// Setup is what a subject has to know of an experiment.
type Setup struct {
	Nodes int
	Limit hybrid.Limit
	Trip  func() time.Duration // draws a round trip; safe for concurrent use
}

// findEachOther is how long nodes need to know how many they are, and to have
// earned the right to floors: the TTL of a registration.
const findEachOther = 5 * time.Second

// withDefaults fills in what is zero.
func (e Experiment) withDefaults() Experiment {
	if e.Limit == (hybrid.Limit{}) {
		e.Limit = hybrid.PerMinute(1000)
	}
	e.Nodes = cmp.Or(e.Nodes, 20)
	e.Trip = cmp.Or(e.Trip, Trip{Mean: 600 * time.Microsecond})
	e.Keys = cmp.Or(e.Keys, 1)
	e.Cost = cmp.Or(e.Cost, 1)
	e.Warm = cmp.Or(e.Warm, findEachOther+e.Fill())
	e.Fills = cmp.Or(e.Fills, 15)
	e.Span = cmp.Or(e.Span, time.Duration(e.Fills*float64(e.Fill())))
	return e
}

// Fill is the time in which an empty bucket fills, or a window's length.
func (e Experiment) Fill() time.Duration {
	l := e.Limit
	if l == (hybrid.Limit{}) {
		l = hybrid.PerMinute(1000)
	}
	if l.Windowed() || l.Count() == 0 {
		return l.Period()
	}
	return time.Duration(float64(l.Burst()) / float64(l.Count()) * float64(l.Period()))
}

// mayFail says whether a request may get no answer of the store in time. It waits
// for up to two round trips: one of a call that is under way, and its own. The
// embedded Redis has connections to make and a script to load besides.
func (e Experiment) mayFail() bool {
	trips := time.Duration(2)
	if e.Store == Mini {
		trips = 8
	}
	return len(e.Faults) > 0 || trips*(e.Trip.most()+time.Microsecond) > cmp.Or(e.Timeout, storeTimeout)
}

// storeTimeout is the library's default.
const storeTimeout = 20 * time.Millisecond

// offered is the rate, in requests per second, of a load.
func (e Experiment) offered(load, rate float64) float64 {
	if rate > 0 {
		return rate
	}
	return load * float64(e.Limit.Count()) / e.Limit.Period().Seconds() * float64(e.Keys) / e.meanCost()
}

func (e Experiment) meanCost() float64 {
	if e.Mixed {
		return float64(1+e.Cost) / 2
	}
	return float64(e.Cost)
}

// random is a source of its own for each purpose, so that a change of one
// thing that is drawn leaves the others as they were.
func (e Experiment) random(purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // never fails
	return rand.New(rand.NewPCG(e.Seed, h.Sum64()))
}
