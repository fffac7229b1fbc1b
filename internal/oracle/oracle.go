// Package oracle judges a finished run: it replays what a fleet admitted and
// says whether any interval held more than the limit allows, and what a
// perfect central limiter would have done with the same requests.
//
// It is pure and knows nothing of the library, so that it cannot share a
// mistake with it. Times are nanoseconds since the Unix epoch, tokens are
// whole; the arithmetic is float64, and [Slack] is what it may be wrong by.
package oracle

import (
	"fmt"
	"time"
)

// Slack is the excess, as a share of the bound's burst, that is put down to
// rounding. One admission too many is far above it for every burst below 10⁸.
const Slack = 1e-9

// Admission is one request that was let through.
type Admission struct {
	At   int64 // ns since the Unix epoch, when it was decided
	Cost int64 // tokens
}

// Limit is what the fleet shares: a token bucket, or a fixed window.
type Limit struct {
	burst  float64       // B, tokens; for a window its quota
	rate   float64       // r, tokens per ns; 0 for a window
	window time.Duration // 0 for a token bucket
}

// New is a token bucket that holds burst tokens and gains count every period.
func New(count int64, period time.Duration, burst int64) Limit {
	return Limit{burst: float64(burst), rate: float64(count) / float64(period)}
}

// NewWindow is a quota per window; windows are aligned to the Unix epoch.
func NewWindow(count int64, period time.Duration) Limit {
	return Limit{burst: float64(count), window: period}
}

// NewAccount is an account in the store's own numbers: rate in tokens per ns, and for
// a window its length. A limit of which floors own a part has a smaller account.
func NewAccount(burst, rate float64, window time.Duration) Limit {
	if window > 0 {
		rate = 0
	}
	return Limit{burst: burst, rate: rate, window: window}
}

// Over is the limit times 1+over: the bound that a fleet with a floor keeps.
func (l Limit) Over(over float64) Limit {
	l.burst *= 1 + over
	l.rate *= 1 + over
	return l
}

// Bound is the most tokens that may be admitted in an interval of length d.
// For a window, d does not matter: the bound is that of one window.
func (l Limit) Bound(d time.Duration) float64 {
	return l.burst + l.rate*float64(d)
}

// Report is the interval in which a run came closest to its bound, or went
// furthest beyond it.
type Report struct {
	Excess   float64 // admitted minus allowed; below 0 it is the room that was left
	From, To int64   // first and last admission of that interval, ns
	Admitted int64   // tokens admitted from From to To, both included
	Total    int64   // tokens admitted in the whole run
	slack    float64
}

// Held says whether no interval held more than the bound.
func (r Report) Held() bool { return r.Excess <= r.slack }

// Err is nil if the bound was held, and tells the worst interval otherwise.
func (r Report) Err() error {
	if r.Held() {
		return nil
	}
	return fmt.Errorf("oracle: bound broken: %v", r)
}

// String tells the worst interval.
func (r Report) String() string {
	return fmt.Sprintf("%d tokens in %v from %d ns, %+.3f against the bound",
		r.Admitted, time.Duration(r.To-r.From), r.From, r.Excess)
}
