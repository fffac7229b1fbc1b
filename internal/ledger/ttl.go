package ledger

import (
	"math"

	"github.com/hybridlimit/hybrid/slice"
)

// TTL returns the time to live in ms of an account that is written now, over
// one from before: until it is empty by the limit at hand and holds no lease, or
// its window ends, and longer by as much as the clock is behind the account. A
// writer with a lower limit never shortens the time that the key has left (ms;
// < 0: none).
func (a *Account) TTL(clock int64, r slice.Rule, before Account, left int64) int64 {
	if before.ahead(clock) {
		left -= (before.At - clock) / 1000 // the key's time has begun then
	}
	before, _ = before.found(clock)
	us, at := float64(a.At-clock), float64(a.At)
	if r.Window > 0 {
		us = us + float64((a.At/r.Window+1)*r.Window) - at
	} else {
		us += a.drains(r, &before, left)
		if a.Lent() > 0 {
			us = us + float64((epochOf(a.At)+2)*slice.Epoch) - at
		}
	}
	ms := int64(max(1, min(maxTTL, math.Ceil(us/1000))))
	if a.Used > float64(r.Burst) {
		ms = max(ms, left)
	}
	return ms
}

// drains is how long the account takes to drain, in µs. Of what a higher limit
// used, more than 2·B, the writer does not know the rate; by its own, it could
// take ages. But it knows how long the key had to live, without its leases, when
// it was last written: no less was used then than now, but for what is added.
func (a *Account) drains(r slice.Rule, before *Account, left int64) float64 {
	debt, us := 2*float64(r.Burst), a.Used/r.Rate
	if a.Used <= debt {
		return us
	}
	had := 0.0
	if left >= 0 {
		had = float64(1000*(float64(left)+1)) + float64(a.At) - float64(before.At) - before.leaseLife()
	}
	return min(us, max(debt/r.Rate, had+max(0, a.Used-before.Used)/r.Rate))
}

// leaseLife is how long the account's leases had to live when it was written, in µs.
func (a *Account) leaseLife() float64 {
	if a.Lent() == 0 {
		return 0
	}
	return float64((epochOf(a.At)+2)*slice.Epoch - a.At)
}
