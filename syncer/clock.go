package syncer

import (
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is what a node knows of the store's clocks: each part has its own.

// hear takes over the clock of a part from a reply.
func (l *lane) hear(g *slice.Grant, sentAt, now int64) {
	offset := g.Clock - (sentAt+now)/2/1000
	if offset == 0 {
		offset = 1
	}
	l.clock.Store(offset)
	l.dispatch.s.clock.Store(offset)
}

// window returns the number of the fixed window that this part is in, 0 for a token
// bucket or if its clock is not known.
func (l *lane) window(period, now int64) int64 {
	offset := l.clock.Load()
	if period == 0 || offset == 0 {
		return 0
	}
	return (now/1000 + offset) / period
}

// windowLeft returns how long the current window lasts.
func (l *lane) windowLeft(period, now int64) (left time.Duration, known bool) {
	w := l.window(period, now)
	if w == 0 {
		return 0, false
	}
	return time.Duration((w+1)*period-(now/1000+l.clock.Load())) * time.Microsecond, true
}

// windowLeft returns how long the window lasts that the account is in; unknown for a
// token bucket.
func (a *Account) windowLeft(plan *Plan, now int64) (left time.Duration, known bool) {
	if plan.Rule.Window == 0 {
		return 0, false
	}
	return a.lane().windowLeft(plan.Rule.Window, now)
}
