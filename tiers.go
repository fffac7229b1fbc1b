package hybrid

import (
	"sync"
	"sync/atomic"

	"github.com/hybridlimit/hybrid/syncer"
)

// tiers turns a limiter's LimitFor into plans. Keys of one limit share a plan.
type tiers struct {
	lim     *Limiter
	plans   sync.Map // Limit → *syncer.Plan
	count   atomic.Int32
	badOnce sync.Once
}

// mostTiers bounds the plans that are shared. A LimitFor that makes up a limit
// for each key gets a plan for each of them.
const mostTiers = 1024

func newTiers(l *Limiter) *tiers { return &tiers{lim: l} }

// planFor returns the plan of a key's own limit; nil if it has none.
func (t *tiers) planFor(key string) *syncer.Plan {
	limit, ok := t.limitFor(key)
	if !ok {
		return nil
	}
	if p, ok := t.plans.Load(limit); ok {
		return p.(*syncer.Plan)
	}
	p := t.lim.plan(limit)
	if t.count.Load() < mostTiers {
		if old, loaded := t.plans.LoadOrStore(limit, p); loaded {
			return old.(*syncer.Plan)
		}
		t.count.Add(1)
	}
	return p
}

// limitFor asks the user's function. What is no limit is counted, and logged
// the first time.
func (t *tiers) limitFor(key string) (limit Limit, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			t.bad("panic", typeOf(p))
			ok = false
		}
	}()
	limit, ok = t.lim.opts.LimitFor(key)
	if !ok {
		return limit, false
	}
	if err := limit.Validate(); err != nil {
		t.bad("error", err)
		return limit, false
	}
	return limit, true
}

func (t *tiers) bad(what string, why any) {
	t.lim.core.Counts.InvalidTiers.Add(1)
	t.badOnce.Do(func() {
		t.lim.node.opts.Logger.Warn("hybrid: LimitFor gave no valid limit; the limiter's own holds", "limiter", t.lim.Name(), what, why)
	})
}
