package batch

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

// breaker says whether a request should wait for one part of the store. While it is open
// none waits; the node's probes alone ask, and the first answer in time closes it.
//
// Silence opens it: at least three calls have failed, the first of them began twice the
// timeout ago, and none has succeeded since. Slowness opens it too, because it turns
// every wait into a failure: more than ten calls of the running second, and more than one
// in twenty, took longer than the timeout.
//
// A store that answers probes and little else must not make it open and close all the
// time. So when it opens again within a second of closing, it stays open for longer each
// time.
type breaker struct {
	timeout int64 // ns, StoreTimeout
	changed func(open bool, cause error)

	open atomic.Bool // written under mu; read by every request that would wait

	mu       sync.Mutex
	failures int   // calls since the last one that was answered in time
	failedAt int64 // ns, when the first of them must have begun to wait
	closedAt int64 // ns
	openedAt int64 // ns
	hold     int64 // ns, how long it stays open at least
	cause    error // of the last of them that failed by more than its time; nil: none
	second   int64 // the second that calls and slow belong to
	calls    int
	slow     int
}

const (
	leastFailures = 3
	leastSample   = 20 // calls in a second before its slow ones count
	slowPart      = 20 // one call in twenty
	leastSlow     = 10 // as many may have met one pause: that is no slow store
	longestHold   = int64(time.Second)
)

// answered records a call that was answered after took ns.
func (b *breaker) answered(now, took int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if took > b.timeout {
		b.countLocked(now, true)
		return
	}
	b.failures, b.cause = 0, nil
	if !b.countLocked(now, false) && now-b.openedAt >= b.hold {
		b.setLocked(false, now, nil)
	}
}

// failed records a call that failed, or that a request stopped waiting for.
func (b *breaker) failed(now int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		b.failedAt = now - b.timeout
	}
	b.failures++
	if err != ErrTimeout {
		b.cause = err
	}
	if b.failures >= leastFailures && now-b.failedAt >= 2*b.timeout {
		b.setLocked(true, now, cmp.Or(b.cause, err))
	}
}

// countLocked counts a call of the running second, and reports whether the slow ones among
// them opened the breaker just now.
func (b *breaker) countLocked(now int64, slow bool) (opened bool) {
	if s := now / int64(time.Second); s != b.second {
		b.second, b.calls, b.slow = s, 0, 0
	}
	b.calls++
	if slow {
		b.slow++
	}
	if b.calls >= leastSample && b.slow > max(b.calls/slowPart, leastSlow) {
		opened = !b.open.Load()
		b.setLocked(true, now, ErrSlow)
	}
	return opened
}

// setLocked sets the state, and reports a change once. changed only passes it on.
func (b *breaker) setLocked(open bool, now int64, cause error) {
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
