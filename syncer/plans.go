package syncer

import "github.com/hybridlimit/hybrid/internal/key"

// Plan, Dial, Policy and Path are the key's.
type (
	Plan   = key.Plan
	Dial   = key.Dial
	Policy = key.Policy
	Path   = key.Path
	Answer = key.Answer
	View   = key.View
)

// NewPlan makes the plan of an account rule under a dial.
var NewPlan = key.NewPlan

// RefreshPlan asks for the key's own limit again, once per SyncInterval at most, so that
// a change of it counts for the next request that no slice serves: a key that floors
// serve, or that is denied, may not be settled for long. It calls user code, so no
// lock is held meanwhile.
func (a *Account) RefreshPlan(now int64) {
	if b := a.binding.Load(); b.limiter.planFor != nil && b.mayAsk(now) {
		a.askPlan(b, now)
	}
}

// askPlan asks for the key's own limit, and lets go of what followed from another.
func (a *Account) askPlan(b *binding, now int64) {
	own := b.limiter.planFor(b.user)
	a.lock()
	changed := false
	if is := a.binding.Load(); !samePlan(is.own, own) {
		a.binding.Store(is.limiter.bind(own, is.user, now))
		a.limitChangedLocked(now)
		changed = true
	}
	a.unlock()
	if changed && b.limiter.changed != nil {
		b.limiter.changed()
	}
}

// mayAsk reports whether the key's own limit may be asked for again, by this caller alone.
func (b *binding) mayAsk(now int64) bool {
	last := b.asked.Load()
	return now-last >= int64(b.limiter.s.cfg.SyncInterval) && b.asked.CompareAndSwap(last, now)
}

func samePlan(a, b *Plan) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// limitChangedLocked lets go of what followed from the old limit.
func (a *Account) limitChangedLocked(now int64) {
	if c := a.active.Load(); c != nil {
		t := a.stepLocked(now)
		c.state.LimitChanged(&t)
		a.finishLocked(&t)
	}
}

// Plan returns the limiter's own plan.
func (l *Limiter) Plan() *Plan { return l.plan.Load() }

// SetPlan replaces the limiter's plan. Slices granted under the old one go back and
// denials under it are forgotten.
func (l *Limiter) SetPlan(p *Plan) {
	l.plan.Store(p)
	now := l.s.Now()
	l.table.Range(func(a *Account) bool {
		a.lock()
		defer a.unlock()
		if a.binding.Load().own == nil {
			a.limitChangedLocked(now)
		}
		return true
	})
	l.s.link.batcher.Flush() // the slices go back now
}
