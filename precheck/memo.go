package precheck

import (
	"math"
	"sync/atomic"
	"time"
)

// Memo remembers a refusal: costs of at least Cost are denied until Until. The
// decision is immutable, so it may be shared and read without a lock; a new one
// replaces it. The zero Memo, and nil, deny nothing.
type Memo struct {
	Cost  int64 // tokens, the smallest cost that was refused
	Until int64 // the memo answers before this moment
	Retry int64 // the earliest moment at which a retry may succeed; math.MaxInt64 = never. If it is before Until, it is Until from then on

	// What was denied since the last Drain: demand that the store has not seen.
	// Both only count, and are not read together as one value: a denial that
	// falls between the two reads of Drain is split over two drains. Most requests
	// cost one token and count in one word.
	// Writers: Denies, and Drain, which takes the counts away.
	requests atomic.Int64
	beyond   atomic.Int64 // tokens, beyond one for each request
}

// mostCounted bounds what one denial adds to the count of tokens, which must
// not overflow however large the costs of an attack. It is the most tokens that
// a slice holds, so no larger demand could be served.
const mostCounted = math.MaxUint32

// Denies reports whether the memo answers for a request of that cost, and
// counts the denial if so.
func (m *Memo) Denies(cost, now int64) bool {
	if m == nil || cost < m.Cost || now >= m.Until {
		return false
	}
	m.requests.Add(1)
	if cost > 1 {
		m.beyond.Add(min(cost, mostCounted) - 1)
	}
	return true
}

// RetryAfter returns the time to the earliest retry that can succeed. It is
// never 0 or less, and math.MaxInt64 if there is none.
func (m *Memo) RetryAfter(now int64) time.Duration {
	if m.Retry == math.MaxInt64 {
		return math.MaxInt64
	}
	if now >= m.Retry {
		return time.Duration(max(m.Until-now, 1))
	}
	return time.Duration(m.Retry - now)
}

// Drain returns what was denied since the last Drain, and forgets it.
func (m *Memo) Drain() (requests, tokens int64) {
	if m == nil {
		return 0, 0
	}
	requests = m.requests.Swap(0)
	return requests, requests + m.beyond.Swap(0)
}
