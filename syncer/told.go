package syncer

import "time"

// Told is what the store last said of an account, for results. It is immutable.
type Told struct {
	Burst int64 // what callers are told the limit is
	Most  int64 // the largest cost that the account can admit
	Free  int64 // whole tokens that were free
	Reset int64 // ns from At until the account is full again
	At    int64 // ns
}

// Told returns what the store last said; nil if it was not asked, or if the
// account was reset since.
func (a *Account) Told() *Told { return a.told.Load() }

// With returns the limit, the tokens remaining when the node's slice holds so
// many, and the time to a full account as it was when the store spoke. It reads
// no clock. The zero values of a nil Told say that nothing is known.
func (t *Told) With(held int64) (limit, remaining int64, reset time.Duration) {
	if t == nil {
		return held, held, 0
	}
	return t.Burst, min(held+t.Free, t.Burst), time.Duration(t.Reset)
}

// View returns the limit, the tokens remaining and the time to a full account,
// as far as the node knows.
func (a *Account) View(now int64) (limit, remaining int64, reset time.Duration) {
	t := a.told.Load()
	if t == nil {
		plan := a.Plan()
		if plan.Never {
			return plan.Burst, 0, 0
		}
		return plan.Burst, plan.Burst, 0
	}
	limit, remaining, _ = t.With(a.Cell.Alive(&a.lim.s.Dead))
	return limit, remaining, time.Duration(max(0, t.At+t.Reset-now))
}

// Denied reports whether a request is denied from memory, and when a retry can
// succeed. A cost that can never fit is not the memo's to judge.
func (a *Account) Denied(n, now int64) (retry time.Duration, denied bool) {
	m := a.memo.Load()
	if m == nil {
		return 0, false
	}
	if t := a.told.Load(); t != nil && n > t.Most || !m.Denies(n, now) {
		return 0, false
	}
	return m.RetryAfter(now), true
}
