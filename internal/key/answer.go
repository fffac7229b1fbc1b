package key

import (
	"fmt"
	"time"
)

// Answer is the decision about one request.
type Answer struct {
	Allowed    bool
	Path       Path
	RetryAfter time.Duration // > 0 when denied; [slice.Never] if the cost can never fit
}

// Path says who decided a request.
type Path uint8

const (
	PathSlice    Path = iota // this node's prepaid slice: nanoseconds, no network
	PathFloor                // this node's floor: a key far below its limit, no network
	PathExact                // the store, or the numbers alone: a cost that can never fit
	PathMemo                 // memory of the store's last refusal: no network until this node asks again
	PathFallback             // the failure policy, because the store did not answer
)

// String returns "slice", "floor", "exact", "memo" or "fallback".
func (p Path) String() string { return name(uint8(p), "slice", "floor", "exact", "memo", "fallback") }

// Policy is what a request is answered while the store is silent.
type Policy uint8

// The failure policies.
const (
	FailLocal  Policy = iota // each node admits its fair share of the limit
	FailOpen                 // everything is admitted
	FailClosed               // everything is denied
)

// String returns "FailLocal", "FailOpen" or "FailClosed".
func (p Policy) String() string {
	if p > FailClosed {
		return fmt.Sprintf("FailurePolicy(%d)", uint8(p))
	}
	return name(uint8(p), "FailLocal", "FailOpen", "FailClosed")
}

func name(i uint8, names ...string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "unknown"
}

// Waiter is one request that waits for its key's next settle. One of cost 0 waits
// for the settle alone; its answer says whether the store took all there was to tell.
type Waiter struct {
	Cost   int64       // tokens
	Answer chan Answer // with room for one, so that the settle never waits for a request
	Err    error       // of a settle that did not run or was not answered, for a waiter of cost 0
	Turn   Turn        // of a reservation that goes later; to be read after the answer
	waits  bool        // it goes later if it does not fit now: see State.Reserve
	reset  bool        // the settle is to free the key
	left   bool        // it has stopped waiting
	sent   bool        // a settle carries its need, and is paid by it
}

// NewWaiter returns a waiter of a cost.
func NewWaiter(cost int64) *Waiter { return &Waiter{Cost: cost, Answer: make(chan Answer, 1)} }

// answer ends the wait.
func (w *Waiter) answer(a Answer) { w.Answer <- a }
