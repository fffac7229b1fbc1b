package syncer

import (
	"slices"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// expiryTimer moves the node's watermark when leases end. Leases share ticks, so there are
// only a few ends at a time; one timer waits for the first.
type expiryTimer struct {
	expiredUpTo *slice.Watermark
	now         func() int64

	mu      sync.Mutex
	pending []slice.Tick // ascending
	timer   *time.Timer
	stopped bool
}

// add makes sure that the watermark passes t in time, which is at once if a
// late reply brought it. It must be called before a cell with that expiry can
// be taken from.
func (e *expiryTimer) add(t slice.Tick) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped || !t.After(e.expiredUpTo.Now()) {
		return
	}
	if !t.After(slice.TickAt(e.now())) {
		e.expiredUpTo.Pass(t)
		return
	}
	i, found := slices.BinarySearchFunc(e.pending, t, compareTicks)
	if found {
		return
	}
	e.pending = slices.Insert(e.pending, i, t)
	if i == 0 {
		e.armLocked()
	}
}

// advance is the timer's function.
func (e *expiryTimer) advance() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := slice.TickAt(e.now())
	for len(e.pending) > 0 && !e.pending[0].After(now) {
		e.expiredUpTo.Pass(e.pending[0])
		e.pending = e.pending[1:]
	}
	if len(e.pending) > 0 && !e.stopped {
		e.armLocked()
	}
}

// armLocked sets the timer to the first end.
func (e *expiryTimer) armLocked() {
	now := e.now()
	ticks := int64(int32(e.pending[0] - slice.TickAt(now)))
	wait := time.Duration(ticks)*slice.TickLength - time.Duration(now%int64(slice.TickLength))
	if e.timer == nil {
		e.timer = time.AfterFunc(wait, e.advance)
		return
	}
	e.timer.Reset(wait)
}

func (e *expiryTimer) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	if e.timer != nil {
		e.timer.Stop()
	}
}

func compareTicks(a, b slice.Tick) int { return int(int32(a - b)) }
