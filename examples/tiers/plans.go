package main

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/hybridlimit/hybrid"
)

// plans knows who has which plan and what each plan allows.
//
// The limiter asks it on the way to decisions, and settles of other keys wait for
// the answer: it must come from memory. So nothing here asks a database. Whoever
// learns of a change (a webhook of the billing system, a poll of a table) writes it
// here, and readers find it with an atomic load or two.
type plans struct {
	limits    atomic.Pointer[map[string]hybrid.Limit] // by plan; replaced as a whole, never written
	customers sync.Map                                // customer → name of the plan; not here: free

	mu sync.Mutex // of those who change a plan
}

func newPlans(limits map[string]hybrid.Limit) *plans {
	p := &plans{}
	p.limits.Store(&limits)
	return p
}

// limitFor is the limiter's LimitFor. Customers without a plan that they pay for
// have the limiter's own limit, which is that of the free plan.
func (p *plans) limitFor(customer string) (hybrid.Limit, bool) {
	plan, ok := p.customers.Load(customer)
	if !ok {
		return hybrid.Limit{}, false
	}
	limit, ok := (*p.limits.Load())[plan.(string)]
	return limit, ok
}

// move gives a customer another plan. It counts for the next request that no slice
// serves: each node asks limitFor once per SyncInterval and key. What was used counts on.
func (p *plans) move(customer, plan string) { p.customers.Store(customer, plan) }

// change gives a plan another limit, for all who have it.
func (p *plans) change(plan string, limit hybrid.Limit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limits := maps.Clone(*p.limits.Load())
	limits[plan] = limit
	p.limits.Store(&limits)
}
