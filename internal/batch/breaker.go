package batch

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

// Breaker tells whether it makes sense to wait for a part of the store. It opens when at
// least three calls have failed, the first of them made twice the time ago that a call
// may wait, and none has succeeded since; or when more than ten calls, and one in
// twenty, of the running second took longer than that time: such a store turns every
// wait into a failure. While it is open no request waits; the node alone probes, and the
// first answer in time closes it. One that opens again soon after it closed stays open
// for longer each time: a store that answers probes and little else must not make it
// open and close all the time.
type Breaker struct {
	timeout int64 // ns, StoreTimeout
	changed func(open bool, cause error)

	open atomic.Bool // written under mu; read by every request that would wait

	mu       sync.Mutex
	failed   int   // calls since the last one that was answered in time
	failedAt int64 // ns, when the first of them must have begun to wait
	closedAt int64 // ns
	openedAt int64 // ns
	hold     int64 // ns, how long it stays open at least
	cause    error // of the last of them that failed by more than the time it took
	second   int64 // the second that calls and slow belong to
	calls    int
	slow     int
}

const (
	leastFailures = 3
	leastSample   = 20 // calls in a second before its slow part is judged
	slowPart      = 20 // one in so many
	leastSlow     = 10 // calls of one pause, which is no slow store
	longestHold   = int64(time.Second)
)

// Succeeded records a call that was answered after took ns.
func (b *Breaker) Succeeded(now, took int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if took > b.timeout {
		b.count(now, true)
		return
	}
	b.failed, b.cause = 0, nil
	if !b.count(now, false) && now-b.openedAt >= b.hold {
		b.turn(false, now, nil)
	}
}

// Failing records a call that failed, or that a caller stopped waiting for.
func (b *Breaker) Failing(now int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == 0 {
		b.failedAt = now - b.timeout
	}
	b.failed++
	if err != ErrTimeout {
		b.cause = err
	}
	if b.failed >= leastFailures && now-b.failedAt >= 2*b.timeout {
		b.turn(true, now, cmp.Or(b.cause, err))
	}
}

// count keeps the number of slow calls of the running second and judges a
// second when it is over; it reports whether that opened it. The caller holds mu.
func (b *Breaker) count(now int64, slow bool) (opened bool) {
	if s := now / int64(time.Second); s != b.second {
		b.second, b.calls, b.slow = s, 0, 0
	}
	b.calls++
	if slow {
		b.slow++
	}
	if b.calls >= leastSample && b.slow > max(b.calls/slowPart, leastSlow) {
		opened = !b.open.Load()
		b.turn(true, now, ErrSlow)
	}
	return opened
}

// turn sets the state and reports a change, once. The caller holds mu; changed
// only hands the event on.
func (b *Breaker) turn(open bool, now int64, cause error) {
	if b.open.Load() == open {
		return
	}
	switch {
	case !open:
		b.closedAt = now
	case b.closedAt != 0 && now-b.closedAt < longestHold:
		b.openedAt, b.hold = now, min(max(2*b.hold, 4*b.timeout), longestHold)
	default:
		b.openedAt, b.hold = now, 0
	}
	b.open.Store(open)
	b.calls, b.slow = 0, 0
	b.changed(open, cause)
}
