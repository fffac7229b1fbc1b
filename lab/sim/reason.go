package sim

import "github.com/hybridlimit/hybrid/slice"

// Reason is what an account was settled for, as far as the store can see.
type Reason uint8

// The reasons.
const (
	Asked    Reason = iota // requests waited for it, and all were admitted
	Refused                // requests waited for it, and one at least was refused
	Refilled               // the node wanted more tokens of an account that is shared
	Paced                  // the node wanted more of an account that is used up: its period was over
	Renewed                // the lease of a slice was to go on
	Returned               // a slice, or a part of it, was given back
	Told                   // the node only told what was used
	reasons                // how many there are
)

var reasonNames = [reasons]string{"asked", "refused", "refilled", "paced", "renewed", "returned", "told"}

// String is one word.
func (r Reason) String() string { return reasonNames[r] }

// ByReason is numbers of operations.
type ByReason [reasons]int64

func (b ByReason) minus(o ByReason) ByReason {
	for i := range b {
		b[i] -= o[i]
	}
	return b
}

// reasonOf reads it from a settle that was executed. Only an account that is used
// up is asked for all that is free (divisor 1).
func reasonOf(st *slice.Settle) Reason {
	u := &st.Usage
	switch {
	case len(u.Needs) > 0:
		for i, need := range u.Needs {
			if i < len(st.Grant.Admitted) && st.Grant.Admitted[i] < need.Count {
				return Refused
			}
		}
		return Asked
	case u.Want > 0 && u.Divisor == 1:
		return Paced
	case u.Want > 0:
		return Refilled
	case u.Returned > 0:
		return Returned
	case u.Held > 0:
		return Renewed
	}
	return Told
}
