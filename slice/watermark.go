package slice

import (
	"sync/atomic"
	"time"
)

// Tick is a moment of the node's own monotonic clock in units of [TickLength],
// modulo 2^32. Two ticks compare correctly while they are less than 248 days
// apart; a cell is swept long before that.
type Tick uint32

// TickLength is coarse on purpose: leases that end together get one tick, so
// that one timer ends them all.
const TickLength = 10 * time.Millisecond

// TickAt returns the tick that holds the moment ns, in nanoseconds of the
// node's clock, rounded down: a lease may end early, never late.
func TickAt(ns int64) Tick { return Tick(ns / int64(TickLength)) }

// After reports whether t comes after u.
func (t Tick) After(u Tick) bool { return int32(t-u) > 0 }

// Watermark is the newest tick at which a lease has ended: every cell whose
// expiry is at or below it is dead. It is how a request learns that a lease
// has ended without reading a clock.
//
// Invariant: it never moves back. Writer: the timer that the node sets to the
// earliest expiry (any number of callers may call Pass). Readers: every Take.
// A Take that loaded the watermark just before it moved may still admit; the
// guard between a lease's local expiry and its end in the store covers that.
type Watermark struct {
	word atomic.Uint32
}

// Now returns the newest tick that has passed.
func (w *Watermark) Now() Tick { return Tick(w.word.Load()) }

// Pass moves the watermark to t, unless it is there or beyond already.
func (w *Watermark) Pass(t Tick) {
	for {
		old := w.word.Load()
		if !t.After(Tick(old)) || w.word.CompareAndSwap(old, uint32(t)) {
			return
		}
	}
}
