package hybrid

import "time"

// Result is the answer to one request.
type Result struct {
	Allowed    bool          // the request may pass, and was charged
	Limit      int64         // burst of a token bucket, quota of a window
	Remaining  int64         // tokens: this node's slice and what was free when Redis last spoke; 0 ≤ Remaining ≤ Limit. Nodes differ
	RetryAfter time.Duration // > 0 when denied: when the same cost can fit if nobody else takes it; Never if it cannot. 0 when allowed. See Limiter.AllowN
	ResetAfter time.Duration // until the key's full limit is free again, if nobody uses it, as last told
	Path       Path          // who decided
	Shadowed   bool          // denied, and allowed only because the limiter is in shadow mode
	Check      int32         // of AllowAll: the index of the check that this is the answer of; else 0
}

// Path says who decided a request.
type Path uint8

const (
	PathSlice    Path = iota // this node's prepaid slice: nanoseconds, no network
	PathFloor                // this node's floor: a key far below its limit, no network
	PathExact                // Redis, or the numbers alone: a cost that can never fit
	PathMemo                 // memory of Redis's last word: refused, or nothing left until this node asks again; no network
	PathFallback             // the failure policy, because Redis did not answer
)

// String returns "slice", "floor", "exact", "memo" or "fallback".
func (p Path) String() string {
	switch p {
	case PathSlice:
		return "slice"
	case PathFloor:
		return "floor"
	case PathExact:
		return "exact"
	case PathMemo:
		return "memo"
	case PathFallback:
		return "fallback"
	default:
		return "unknown"
	}
}
