package syncer

import (
	"sync/atomic"
	"time"
)

// told is what the store last said of an account, for results and for a fair
// start of the failure policy. It lies beside the cell, where the fast path
// finds it without another cache miss.
//
// Writer: whoever holds the account's mu. Readers: every request. The numbers
// are read one by one and may be of different replies.
type told struct {
	free  atomic.Int64 // tokens that were free
	reset atomic.Int64 // ns until the account was full again, at the moment at; 0: never told, or full
	at    atomic.Int64 // ns; before the store told anything, when the account was made
}

func (t *told) set(free float64, reset time.Duration, now int64) {
	t.free.Store(int64(free))
	t.reset.Store(int64(reset))
	t.at.Store(now)
}

func (t *told) forget() {
	t.free.Store(0)
	t.reset.Store(0)
}

// full reports whether an account that nobody used since would be full; true if
// it was never told of.
func (t *told) full(now int64) bool { return now-t.at.Load() >= t.reset.Load() }

// Told returns the limit, and the tokens that were free and the time to a full
// account as the store last told. It reads no clock and takes no lock.
func (a *Account) Told() (limit, free int64, reset time.Duration) {
	return a.Plan().Burst, a.told.free.Load(), time.Duration(a.told.reset.Load())
}

// View returns the limit, the tokens remaining and the time to a full account,
// as far as the node knows.
func (a *Account) View(now int64) (limit, remaining int64, reset time.Duration) {
	plan := a.Plan()
	switch {
	case plan.Never:
		return plan.Burst, 0, 0
	case a.told.full(now):
		return plan.Burst, plan.Burst, 0
	}
	limit, free, reset := a.Told()
	remaining = min(a.Cell.Alive(&a.lim.s.Dead)+free, limit)
	return limit, remaining, reset - time.Duration(now-a.told.at.Load())
}

// Denied reports whether a request is denied from memory, and when a retry can
// succeed. A cost that can never fit is not the memo's to judge.
func (a *Account) Denied(n, now int64) (retry time.Duration, denied bool) {
	m := a.memo.Load()
	if m == nil || !a.Plan().Fits(n) || !m.Denies(n, now) {
		return 0, false
	}
	return m.RetryAfter(now), true
}
