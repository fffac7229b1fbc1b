package hybrid

import (
	"fmt"
	"math"
	"time"
)

// Why says in one sentence whether the next request of one token would be allowed on
// this node, and why. It is true of the moment of the state; what Redis would decide,
// other nodes may change until it is asked.
func (s KeyState) Why() string {
	f := s.foresee()
	verdict := "Undecided"
	switch {
	case !f.known:
	case f.allowed:
		verdict = "Allowed"
	case s.shadow:
		verdict = "Denied, and let through in shadow mode"
	default:
		verdict = "Denied"
	}
	return verdict + ": " + f.why + "."
}

// foresight is how the next request of one token would be decided.
type foresight struct {
	path    Path
	allowed bool
	known   bool // path and allowed are certain, unless others use the key meanwhile; else they are likely
	why     string
}

// foresee goes through what Limiter.judge goes through, in its order.
func (s *KeyState) foresee() foresight {
	switch {
	case s.Slice >= 1:
		return foresight{PathSlice, true, true, s.whySlice()}
	case s.never:
		return foresight{PathExact, false, true, "the limit is 0"}
	case s.DeniedCost == 1:
		return foresight{PathMemo, false, true, s.whyMemo()}
	case s.Floor >= 1:
		return foresight{PathFloor, true, true, fmt.Sprintf("this node's floor holds %.1f tokens, since the key is far below its limit", s.Floor)}
	case s.StoreDown:
		return s.fall("Redis does not answer")
	case s.overdue:
		return s.fall("a call about the key has not been answered in time")
	case s.waits:
		return foresight{PathExact, s.likely(), false, "this node holds no token of the key, and a call about it is under way, which a request would wait for"}
	case s.Store == nil:
		f := s.fall("")
		return foresight{PathFallback, f.allowed, false, fmt.Sprintf("Redis would be asked, and did not answer just now (%s); if it does not, %s %s", s.StoreCause, s.policy, f.verb())}
	}
	return s.ask()
}

func (s *KeyState) whySlice() string {
	text := fmt.Sprintf("this node's slice holds %s for another %v", tokens(float64(s.Slice)), about(s.SliceEnds))
	if s.Unsettled {
		text += ", and is not renewed then, since the answer to a call was lost"
	}
	return text
}

func (s *KeyState) whyMemo() string {
	if s.Paced {
		return fmt.Sprintf("the key is used up, and this node, which asks Redis for it once a period, asks again within %v", about(s.DeniedFor))
	}
	return fmt.Sprintf("Redis refused a request of one token lately, and this node does not ask again for %v", about(s.DeniedFor))
}

// fall is the answer of the failure policy.
func (s *KeyState) fall(reason string) foresight {
	switch s.policy {
	case FailOpen:
		return foresight{PathFallback, true, true, reason + ", and FailOpen allows all"}
	case FailClosed:
		return foresight{PathFallback, false, true, reason + ", and FailClosed denies all"}
	}
	return foresight{PathFallback, s.share >= 1, true, fmt.Sprintf("%s, and under FailLocal %s %s left of this node's share of the limit", reason, tokens(s.share), isAre(s.share))}
}

func (f *foresight) verb() string {
	if f.allowed {
		return "allows it"
	}
	return "denies it"
}

// ask is the answer of Redis, where the next settle charges what is owed before it
// admits.
func (s *KeyState) ask() foresight {
	least := s.Store.Free - max(s.Owed, 0) - s.Fallback
	most := s.Store.Free - min(s.Owed, 0) + s.stale + s.soon
	lent := float64(s.Store.Lent)
	if reported := s.spent + s.stale; reported > lent {
		least -= reported // Redis does not know of all of it, and will charge it
	}
	if lent > s.size {
		most = math.Inf(1) // a higher limit lent it: more may be free once it is reported
	}
	why := fmt.Sprintf("this node holds no token of the key and would ask Redis, where %s of %d %s free", tokens(s.Store.Free), s.Limit.Burst(), isAre(s.Store.Free))
	if s.Store.Lent > 0 {
		why += fmt.Sprintf(" and %d lent to nodes", s.Store.Lent)
	}
	return foresight{PathExact, s.likely(), least >= 1 || most < 1, why}
}

// likely is the answer of Redis if nothing happens until it is asked, and it knows of all
// that it has lent; without Redis it is that of the failure policy.
func (s *KeyState) likely() bool {
	if s.Store == nil {
		return s.fall("").allowed
	}
	return s.Store.Used+s.untold()+1 <= s.size
}

// untold is what the next settle takes from the account before it admits.
func (s *KeyState) untold() float64 { return s.Owed + s.Fallback - s.stale }

// tokens counts tokens in words.
func tokens(n float64) string {
	switch {
	case n == 1:
		return "1 token"
	case n == float64(int64(n)):
		return fmt.Sprintf("%d tokens", int64(n))
	}
	return fmt.Sprintf("%.1f tokens", n)
}

func isAre(n float64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// about rounds a span to what is worth telling.
func about(d time.Duration) time.Duration {
	unit := time.Microsecond
	switch {
	case d >= 10*time.Second:
		unit = time.Second
	case d >= 10*time.Millisecond:
		unit = time.Millisecond
	}
	return (d + unit/2) / unit * unit
}
