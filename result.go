package hybrid

import (
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/syncer"
)

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

// Path says who decided a request. Its String is "slice", "floor", "exact", "memo" or
// "fallback".
type Path = syncer.Path

const (
	PathSlice    Path = key.PathSlice    // this node's prepaid slice: nanoseconds, no network
	PathFloor    Path = key.PathFloor    // this node's floor: a key far below its limit, no network
	PathExact    Path = key.PathExact    // Redis, or the numbers alone: a cost that can never fit
	PathMemo     Path = key.PathMemo     // memory of Redis's last refusal: no network until this node asks again
	PathFallback Path = key.PathFallback // the failure policy, because Redis did not answer
)
