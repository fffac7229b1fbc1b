package hybrid

import (
	"fmt"

	"github.com/hybridlimit/hybrid/syncer"
)

// Accuracy is the one dial between accuracy on one side, latency and load on
// Redis on the other. It is comparable; the zero value is Balanced.
//
//	             over-admission   left unspent   Redis is asked
//	Exact        0                0              for every admission
//	Strict       0                little         for a key's first requests, for slices, near the limit
//	Balanced     10 %             little         the same, but not for keys far below their limit
//	Within(o,u)  o                u              the same, with floors of o+u of the limit
type Accuracy struct {
	kind        accuracyKind
	over, under float64 // of Within
}

// The named accuracies.
var (
	Balanced = Accuracy{}                 // slices, and a floor of 10 % on top of the limit: Within(0.10, 0)
	Strict   = Accuracy{kind: strictKind} // slices and no floor: never more than the limit
	Exact    = Accuracy{kind: exactKind}  // every admission asks Redis: never more than the limit
)

type accuracyKind uint8

const (
	balancedKind accuracyKind = iota
	strictKind
	exactKind
	withinKind
)

// Within lets the fleet admit up to over times the limit on top of it, and gives
// up to under times the limit away: together they are floors, which each node
// may admit from without asking anybody. Both are parts of 1, from 0 to 1; other
// values make Node.Limiter fail with ErrInvalidAccuracy. Within(0, 0) == Strict.
//
// With under > 0 the shared account shrinks: a single cost above (1−under) of
// the burst cannot be admitted.
func Within(over, under float64) Accuracy {
	switch {
	case over == 0 && under == 0:
		return Strict
	case over == 0.1 && under == 0:
		return Balanced
	}
	return Accuracy{kind: withinKind, over: over + 0, under: under + 0} // −0 is 0
}

// Over returns the part of the limit that may be admitted on top of it.
func (a Accuracy) Over() float64 {
	over, _ := a.parts()
	return over
}

// String returns "Balanced", "Strict", "Exact" or "Within(over, under)".
func (a Accuracy) String() string {
	switch a.kind {
	case balancedKind:
		return "Balanced"
	case strictKind:
		return "Strict"
	case exactKind:
		return "Exact"
	default:
		return fmt.Sprintf("Within(%v, %v)", a.over, a.under)
	}
}

func (a Accuracy) parts() (over, under float64) {
	if a.kind == balancedKind {
		return 0.10, 0
	}
	return a.over, a.under
}

func (a Accuracy) validate() error {
	for _, part := range []float64{a.over, a.under} {
		if !(part >= 0 && part <= 1) {
			return fmt.Errorf("%w: Accuracy: %v, allowed Balanced, Strict, Exact or Within(over, under) with both from 0 to 1", ErrInvalidAccuracy, a)
		}
	}
	return nil
}

// dial translates an accuracy into the arithmetic of floors and slices.
func (a Accuracy) dial() syncer.Dial {
	over, under := a.parts()
	return syncer.Dial{Over: over, Under: under, Slices: a != Exact}
}
