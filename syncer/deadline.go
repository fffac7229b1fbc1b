package syncer

import (
	"slices"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// deadlines moves the node's watermark when leases end. Leases share ticks, so
// there are only a few deadlines at a time; one timer waits for the first.
type deadlines struct {
	dead *slice.Watermark
	now  func() int64

	mu      sync.Mutex
	pending []slice.Tick // ascending
	timer   *time.Timer
	stopped bool
}

// add makes sure that the watermark passes t in time, which is at once if a
// late reply brought it. It must be called before a cell with that expiry can
// be taken from.
func (d *deadlines) add(t slice.Tick) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped || !t.After(d.dead.Now()) {
		return
	}
	if !t.After(slice.TickAt(d.now())) {
		d.dead.Pass(t)
		return
	}
	i, found := slices.BinarySearchFunc(d.pending, t, compareTicks)
	if found {
		return
	}
	d.pending = slices.Insert(d.pending, i, t)
	if i == 0 {
		d.arm()
	}
}

// pass is the timer's function.
func (d *deadlines) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := slice.TickAt(d.now())
	for len(d.pending) > 0 && !d.pending[0].After(now) {
		d.dead.Pass(d.pending[0])
		d.pending = d.pending[1:]
	}
	if len(d.pending) > 0 && !d.stopped {
		d.arm()
	}
}

// arm sets the timer to the first deadline. The caller holds mu.
func (d *deadlines) arm() {
	now := d.now()
	ticks := int64(int32(d.pending[0] - slice.TickAt(now)))
	wait := time.Duration(ticks)*slice.TickLength - time.Duration(now%int64(slice.TickLength))
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.pass)
		return
	}
	d.timer.Reset(wait)
}

func (d *deadlines) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

func compareTicks(a, b slice.Tick) int { return int(int32(a - b)) }
