package hybrid

import (
	"fmt"
	"math"
	"time"
)

// why says how the next request of one token would be decided, in one sentence.
func (v *view) why() string {
	f := v.foresee()
	verdict := "Undecided"
	switch {
	case !f.known:
	case f.allowed:
		verdict = "Allowed"
	case v.shadow:
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

// foresee goes through what a request goes through, in its order.
func (v *view) foresee() foresight {
	s, node := &v.state, &v.node
	switch {
	case s.Slice >= 1:
		return foresight{PathSlice, true, true, v.whySlice()}
	case node.Plan.Never:
		return foresight{PathExact, false, true, "the limit is 0"}
	case node.Plan.Always:
		return foresight{PathExact, true, true, "the key is unlimited"}
	case s.DeniedCost == 1:
		return foresight{PathMemo, false, true, v.whyMemo()}
	case s.Floor >= 1:
		return foresight{PathFloor, true, true, fmt.Sprintf("this node's floor holds %.1f tokens, since the key is far below its limit", s.Floor)}
	case s.StoreDown:
		return v.fallBack("Redis does not answer")
	case node.Overdue:
		return v.fallBack("a call about the key has not been answered in time")
	case node.Waits:
		return foresight{PathExact, v.likely(), false, "this node holds no token of the key, and a call about it is under way, which a request would wait for"}
	case s.Store == nil:
		f := v.fallBack("")
		return foresight{PathFallback, f.allowed, false, fmt.Sprintf("Redis would be asked, and did not answer just now (%s); if it does not, %s %s", s.StoreCause, v.policy, f.verb())}
	}
	return v.ask()
}

func (v *view) whySlice() string {
	text := fmt.Sprintf("this node's slice holds %s for another %v", tokens(float64(v.state.Slice)), about(v.state.SliceEnds))
	if v.state.Unsettled {
		text += ", and is not renewed then, since the answer to a call was lost"
	}
	return text
}

func (v *view) whyMemo() string {
	s := &v.state
	again := fmt.Sprintf("Redis refused a request of one token lately, and this node does not ask again for %v", about(s.DeniedFor))
	if s.Paced {
		again = fmt.Sprintf("this node, which asks Redis for the key once a period, asks again within %v", about(s.DeniedFor))
	}
	switch {
	case s.Store == nil:
		return "Redis had no token left when it was last asked; " + again
	case s.Store.Lent > 0:
		return fmt.Sprintf("%s in slices of other servers, which use them, or return them within two minutes, and %s %s free; %s",
			tokensAre(float64(s.Store.Lent)), tokens(math.Floor(s.Store.Free)), isAre(math.Floor(s.Store.Free)), again)
	case s.Store.Free >= 1:
		return fmt.Sprintf("the key was used up when Redis was last asked, and %s %s free again by now; %s", tokens(math.Floor(s.Store.Free)), isAre(math.Floor(s.Store.Free)), again)
	}
	return "the key is used up; " + again
}

// tokensAre is tokens with its verb.
func tokensAre(n float64) string { return tokens(n) + " " + isAre(n) }

// fallBack is the answer of the failure policy.
func (v *view) fallBack(reason string) foresight {
	switch v.policy {
	case FailOpen:
		return foresight{PathFallback, true, true, reason + ", and FailOpen allows all"}
	case FailClosed:
		return foresight{PathFallback, false, true, reason + ", and FailClosed denies all"}
	}
	share := v.node.Share
	return foresight{PathFallback, share >= 1, true, fmt.Sprintf("%s, and under FailLocal %s %s left of this node's share of the limit", reason, tokens(share), isAre(share))}
}

func (f *foresight) verb() string {
	if f.allowed {
		return "allows it"
	}
	return "denies it"
}

// ask is the answer of Redis, where the next settle charges what is owed before it
// admits.
func (v *view) ask() foresight {
	s, size := &v.state, float64(v.node.Plan.Rule.Burst)
	spent, stale := float64(v.node.Spent), float64(v.node.Stale)
	least := s.Store.Free - max(s.Owed, 0) - s.Fallback
	most := s.Store.Free - min(s.Owed, 0) + stale + v.soon
	lent := float64(s.Store.Lent)
	if reported := spent + stale; reported > lent {
		least -= reported // Redis does not know of all of it, and will charge it
	}
	if lent > size {
		most = math.Inf(1) // a higher limit lent it: more may be free once it is reported
	}
	why := fmt.Sprintf("this node holds no token of the key and would ask Redis, where %s of %d %s free", tokens(s.Store.Free), s.Limit.Burst(), isAre(s.Store.Free))
	if s.Store.Lent > 0 {
		why += fmt.Sprintf(" and %d lent to nodes", s.Store.Lent)
	}
	return foresight{PathExact, v.likely(), least >= 1 || most < 1, why}
}

// likely is the answer of Redis if nothing happens until it is asked, and it knows of all
// that it has lent; without Redis it is that of the failure policy.
func (v *view) likely() bool {
	if v.state.Store == nil {
		return v.fallBack("").allowed
	}
	return v.state.Store.Used+v.untold()+1 <= float64(v.node.Plan.Rule.Burst)
}

// untold is what the next settle takes from the account before it admits.
func (v *view) untold() float64 {
	return v.state.Owed + v.state.Fallback - float64(v.node.Stale)
}

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
