package syncer

import (
	"math"
	"sync/atomic"
	"time"
)

// told is what the store last said of an account, for results and for a fair
// start of the failure policy. It lies beside the cell, so that the fast path
// finds it without another cache miss, and is small because cold keys have it
// too: floats of 32 bits are exact for 16 million tokens, and beyond that to
// seven digits, which a number that differs between nodes does not deserve.
//
// Writer: whoever holds the account's mu. Readers: every request. The two
// numbers are read one by one and may be of different replies.
type told struct {
	free  atomic.Uint32 // float32 bits: tokens that were free; 0 with reset 0: never told
	reset atomic.Uint32 // float32 bits: seconds until the account is full again
	at    uint32        // seconds of the node's clock, when it was told; under mu
	known bool          // under mu
}

func (t *told) set(free float64, reset time.Duration, now int64) {
	t.free.Store(roundedDown(free))
	t.reset.Store(math.Float32bits(float32(reset.Seconds())))
	t.at, t.known = uint32(now/int64(time.Second)), true
}

func (t *told) forget() {
	t.free.Store(0)
	t.reset.Store(0)
	t.known = false
}

// roundedDown returns the bits of the largest float32 that is not above f.
func roundedDown(f float64) uint32 {
	v := float32(f)
	if float64(v) > f {
		v = math.Nextafter32(v, 0)
	}
	return math.Float32bits(v)
}

func (t *told) freeTokens() int64 { return int64(math.Float32frombits(t.free.Load())) }

func (t *told) resetAfter() time.Duration {
	s := float64(math.Float32frombits(t.reset.Load()))
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// full reports whether an account that nobody used since would be full. The
// caller holds mu.
func (t *told) full(now int64) bool {
	return !t.known || now >= (int64(t.at)+1)*int64(time.Second)+int64(t.resetAfter())
}

// View returns the limit, the tokens remaining and the time to a full account,
// as the store last told, when the node's slice holds so many tokens. It reads
// no clock and takes no lock.
func (a *Account) View(held int64) (limit, remaining int64, reset time.Duration) {
	plan := a.Plan()
	switch reset = a.told.resetAfter(); {
	case plan.Never:
		return plan.Burst, 0, 0
	case reset == 0 && held == 0 && a.told.freeTokens() == 0:
		return plan.Burst, plan.Burst, 0 // never told: nothing is known to be used
	}
	return plan.Burst, min(held+a.told.freeTokens(), plan.Burst), reset
}

// Held returns the tokens of the node's slice.
func (a *Account) Held() int64 { return a.Cell.Alive(&a.lim.s.Dead) }

// Denied reports whether a request is denied from memory, and when a retry can
// succeed. A cost that can never fit is not the memo's to judge.
func (a *Account) Denied(n, now int64) (retry time.Duration, denied bool) {
	m := a.memo.Load()
	if m == nil || !a.Plan().Fits(n) || !m.Denies(n, now) {
		return 0, false
	}
	return m.RetryAfter(now), true
}
