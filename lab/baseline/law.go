package baseline

import (
	"math"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// law is a limit in the units of the lab: tokens, and ns since the Unix epoch.
type law struct {
	burst  float64       // tokens; a window's quota
	rate   float64       // tokens per ns; 0 for a window
	window time.Duration // 0 for a token bucket
}

// usage is what has been taken from a limit and has not drained by some time.
type usage struct {
	used float64
	at   int64 // ns
}

func newLaw(limit hybrid.Limit) law {
	l := law{burst: float64(limit.Burst())}
	if limit.Windowed() {
		l.window = limit.Period()
	} else {
		l.rate = float64(limit.Count()) / float64(limit.Period())
	}
	return l
}

// share is one node's part of a limit that is divided once and for all. A node
// cannot hold less than one token and admit anything: with a burst below the
// number of nodes, such schemes give each node one. The rate still adds up to the
// limit's, a burst and a window do not.
func (l law) share(nodes int) law {
	l.burst = max(math.Min(1, l.burst), math.Floor(l.burst/float64(nodes)))
	l.rate /= float64(nodes)
	return l
}

// life is for how long a prepaid slice is good that is taken now. A window's
// slice ends with the window. A bucket's ends when the account would have
// earned a whole burst since: longer, and slices of several ages could be spent on
// top of a full account; shorter, and slow nodes lose what they have paid for.
func (l law) life(now int64) time.Duration {
	switch {
	case l.window > 0:
		return l.window - time.Duration(mod(now, int64(l.window)))
	case l.rate > 0:
		return time.Duration(math.Ceil(l.burst / l.rate))
	}
	return math.MaxInt64 / 2 // what is never earned again need not end
}

// drain brings u up to now.
func (l law) drain(u usage, now int64) usage {
	switch {
	case l.window == 0:
		u.used = max(0, u.used-l.rate*float64(now-u.at))
	case l.past(u.at, now):
		u.used = 0
	}
	u.at = now
	return u
}

// past says whether what was used at a time no longer counts at another,
// because it lies in another window.
func (l law) past(at, now int64) bool {
	return l.window > 0 && at-mod(at, int64(l.window)) != now-mod(now, int64(l.window))
}

// free is how much of the limit is left; below 0 it is in debt.
func (l law) free(u usage) float64 {
	return l.burst - u.used
}

// fits says whether cost is left, but for rounding.
func (l law) fits(u usage, cost int64) bool {
	return float64(cost) <= l.free(u)+oracle.Slack/2*l.burst
}

// mod is at modulo w, never below 0.
func mod(at, w int64) int64 {
	return ((at % w) + w) % w
}
