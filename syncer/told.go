package syncer

import (
	"math"
	"time"
)

// This file is what the store last said of an account, for results and for a fair
// start of the failure policy: how much was free, and when the account is full
// again if nobody uses it. It lies beside the cell, where the fast path finds it
// without another cache miss.
//
// Writer: whoever holds the account's mu. Readers: every request. The two numbers
// are read one by one and may be of different replies.

// told keeps what the store said.
func (a *Account) told(free float64, reset time.Duration, now int64) {
	a.free.Store(floatBits(free))
	a.fullAt.Store(saturatingAdd(now, int64(reset)))
}

// forgetTold says that all is free, and nothing is in use.
func (a *Account) forgetTold(now int64) {
	a.free.Store(0)
	a.fullAt.Store(min(a.fullAt.Load(), now))
}

// floatBits packs whole tokens into a float32, rounded down: what a node believes
// to be free is never too much. It is exact up to 2^24, and then to seven digits.
func floatBits(tokens float64) uint32 {
	tokens = math.Floor(tokens)
	f := float32(tokens)
	if float64(f) > tokens {
		f = math.Nextafter32(f, 0)
	}
	return math.Float32bits(f)
}

// toldFree returns the tokens that were free.
func (a *Account) toldFree() int64 { return int64(math.Float32frombits(a.free.Load())) }

// full reports whether an account that nobody used since would be full; true if
// it was never told of.
func (a *Account) full(now int64) bool { return now >= a.fullAt.Load() }

// Told returns the limit of an account, and the tokens that were free and the time
// to a full account, as far as the node knows. It reads no clock but the one that
// ticks each SyncInterval, and takes no lock.
func (l *Limiter) Told(a *Account) (limit, free int64, reset time.Duration) {
	plan := l.plan.Load()
	if l.planFor != nil {
		plan = a.Plan()
	}
	reset = time.Duration(a.fullAt.Load() - l.s.coarse.Load())
	if reset <= 0 {
		return plan.Burst, plan.Burst, 0
	}
	return plan.Burst, a.toldFree(), reset
}

// View returns the limit, the tokens remaining and the time to a full account,
// as far as the node knows.
func (a *Account) View(now int64) (limit, remaining int64, reset time.Duration) {
	plan := a.Plan()
	switch {
	case plan.Never:
		return plan.Burst, 0, 0
	case a.full(now):
		return plan.Burst, plan.Burst, 0
	}
	remaining = min(a.Cell.Alive(&a.limiter().s.Dead)+a.toldFree(), plan.Burst)
	return plan.Burst, remaining, time.Duration(a.fullAt.Load() - now)
}

// Denied reports whether a request is denied from memory, and when a retry can
// succeed. A cost that can never fit is not the memo's to judge.
func (a *Account) Denied(n, now int64) (retry time.Duration, denied bool) {
	c := a.contact()
	if c == nil {
		return 0, false
	}
	m := c.memo.Load()
	if m == nil || !a.Plan().Fits(n) || !m.Denies(n, now) {
		return 0, false
	}
	return m.RetryAfter(now), true
}
