package hybrid

import (
	"fmt"
	"math"

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
type Accuracy uint64

const (
	Balanced Accuracy = iota // slices, and a floor of 10 % on top of the limit: Within(0.10, 0)
	Strict                   // slices and no floor: never more than the limit
	Exact                    // every admission asks Redis: never more than the limit
)

// Parts are kept in billionths in 30 bits each, so that equal dials compare equal.
const (
	billion     = 1e9
	withinFlag  = 1 << 63
	invalidFlag = 1 << 62
	underBits   = 30
	underMask   = 1<<underBits - 1
)

// Within lets the fleet admit up to over times the limit on top of it, and gives
// up to under times the limit away: together they are floors, which each node
// may admit from without asking anybody. Both are parts of 1, from 0 to 1, exact
// to a billionth; other values make Node.Limiter fail with ErrInvalidAccuracy.
// Within(0, 0) == Strict.
//
// With under > 0 the shared account shrinks: a single cost above (1−under) of
// the burst cannot be admitted.
func Within(over, under float64) Accuracy {
	for _, part := range []float64{over, under} {
		if !(part >= 0 && part <= 1) {
			return withinFlag | invalidFlag | Accuracy(math.Float32bits(float32(part)))
		}
	}
	o, u := Accuracy(math.Round(over*billion)), Accuracy(math.Round(under*billion))
	switch {
	case o == 0 && u == 0:
		return Strict
	case o == billion/10 && u == 0:
		return Balanced
	}
	return withinFlag | o<<underBits | u
}

// Over returns the part of the limit that may be admitted on top of it.
func (a Accuracy) Over() float64 {
	over, _ := a.parts()
	return over
}

// String returns "Balanced", "Strict", "Exact" or "Within(over, under)".
func (a Accuracy) String() string {
	switch {
	case a == Balanced:
		return "Balanced"
	case a == Strict:
		return "Strict"
	case a == Exact:
		return "Exact"
	case a.validate() != nil:
		return fmt.Sprintf("Accuracy(%#x)", uint64(a))
	}
	over, under := a.parts()
	return fmt.Sprintf("Within(%v, %v)", over, under)
}

func (a Accuracy) parts() (over, under float64) {
	switch {
	case a == Balanced:
		return 0.10, 0
	case a&withinFlag == 0:
		return 0, 0
	}
	return float64(a>>underBits&underMask) / billion, float64(a&underMask) / billion
}

func (a Accuracy) validate() error {
	const allowed = "allowed Balanced, Strict, Exact or Within(over, under) with both from 0 to 1"
	switch {
	case a <= Exact:
		return nil
	case a&withinFlag != 0 && a&invalidFlag != 0:
		return fmt.Errorf("%w: Accuracy: Within with %v, %s", ErrInvalidAccuracy, math.Float32frombits(uint32(a)), allowed)
	case a&withinFlag == 0 || a>>underBits&underMask > billion || a&underMask > billion:
		return fmt.Errorf("%w: Accuracy: %#x, %s", ErrInvalidAccuracy, uint64(a), allowed)
	}
	return nil
}

// dial translates an accuracy into the arithmetic of floors and slices.
func (a Accuracy) dial() syncer.Dial {
	over, under := a.parts()
	return syncer.Dial{Over: over, Under: under, Slices: a != Exact}
}
