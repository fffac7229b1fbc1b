package slice

import "math"

// Limits of the numbers that the store's arithmetic keeps exact: it computes
// with IEEE 754 doubles, whose integers are exact up to 2^53.
const (
	MaxTokens = 1 << 53        // the largest burst, cost or count
	MaxRuns   = 64             // the most runs of needs that one settle carries
	MaxSlice  = math.MaxUint32 // the most tokens that a cell holds
)

// Epoch is the length of a lease epoch in microseconds of the store's clock.
// It is a constant of the stored format: nodes that used two lengths would
// number epochs differently and forget, or keep for ever, each other's leases.
const Epoch = 60_000_000

// Rule is how an account fills: what the arithmetic needs of a limit.
type Rule struct {
	Burst  int64   // B, tokens; 0 < B ≤ MaxTokens
	Rate   float64 // r, tokens per microsecond; for a window Burst/Window
	Window int64   // microseconds, aligned to the Unix epoch; 0 = token bucket
}

// Tag names the lease that a slice belongs to: the epoch it was granted or
// last renewed in and, for a fixed window, the number of that window
// (⌊µs/Window⌋; 0 for a token bucket). The zero Tag means: holds no slice.
type Tag struct {
	Epoch  int64
	Window int64
}

// Need is a run of Count requests of Cost tokens each that wait for an answer.
type Need struct {
	Cost  int64 // tokens, > 0
	Count int64 // requests, > 0; or 0: one that may wait. It comes last
}

// A need that may wait (Count 0) is admitted if it fits, and else reserved while used +
// cost ≤ 2·B and lent + cost ≤ B: its cost is lent at once, like a slice of the grant's Tag,
// and nothing else is admitted or lent while more than B is used. It may be spent when used
// has drained to B, (Used − B)/r after Now, while its lease lasts. So the first in line goes
// first, in the store's order. Its node then reports it as Spent, or as Returned if it does
// not go after all. Grant.Admitted is 1 if it was admitted or reserved (then Used > B), and 0 if
// it was refused. A window reserves nothing.

// Usage is what a node reports of one account and asks for it.
type Usage struct {
	Tag      Tag   // the lease that Spent, Returned and Held belong to
	Spent    int64 // tokens used from the slice since the last settle that ran
	Returned int64 // tokens that left the slice to go back to the account
	Held     int64 // tokens that stay in the slice; their lease is renewed

	Charged  float64 // used without asking (floor, Charge); a refund is negative. Debt ends at 2·B
	Fallback float64 // admitted while the store was away; charged up to B, never beyond. ≥ 0

	Return   float64 // tokens of admissions that are undone, ≥ 0: less by what has drained since ReturnAt
	ReturnAt int64   // µs of the store's clock, when the first of them was admitted; in a window Tag.Window counts alone

	Needs []Need // in the order of arrival; at most MaxRuns

	Want    int64 // tokens wished for the slice; 0 = none
	Least   int64 // a grant below it is useless and not made; ≥ 1 when Want > 0
	Unit    int64 // a grant is a whole multiple of it; ≥ 1 when Want > 0
	Divisor int64 // a grant is at most ⌊free/Divisor⌋; ≥ 1 when Want > 0
}

// Settle is one operation on one account.
type Settle struct {
	Account string // the key in the store
	Rule    Rule
	Usage   Usage

	// Filled in by the store.
	Outcome Outcome
	Err     error // why it did not run, or why the outcome is unknown
	Lone    bool  // the store is well and refused this account alone: a key of the wrong type, a bad argument
	Grant   Grant // valid when Outcome is Ran
}

// Outcome is how much is known of a settle's execution. It decides what
// becomes of the tokens that the settle spoke of.
type Outcome uint8

const (
	Unknown Outcome = iota // no reply: it may have run, and may yet run
	NotRun                 // certainly not executed: the cell takes its numbers back
	Ran                    // executed once, and Grant is its reply
)

func (o Outcome) String() string {
	switch o {
	case NotRun:
		return "not run"
	case Ran:
		return "ran"
	default:
		return "unknown"
	}
}

// Grant is the store's answer to one settle that ran.
type Grant struct {
	Dropped bool    // the slice is gone: its lease was too old and the report was ignored, or did not cover Held, which was charged as spent
	Rebuilt bool    // the stored state was unreadable, or far ahead of the clock, and was replaced
	Granted int64   // tokens added to the slice
	Used    float64 // tokens taken from the account and not drained, after this settle
	Lent    int64   // tokens out on lease on all nodes, after this settle; ≤ Used
	Tag     Tag     // the lease that Held and Granted now belong to
	Life    int64   // microseconds from Now to the end of that lease
	Now     int64   // the store's clock, microseconds since the Unix epoch; never less than the account's last write
	Clock   int64   // the store's raw TIME: less than Now while its clock is behind the account

	Admitted []int64 // for each run of needs, how many of it were admitted
}
