package sim

import (
	"fmt"

	"github.com/hybridlimit/hybrid/internal/oracle"
)

// This file is how refunds and charges are judged. A refund is a negative admission
// when it takes effect; a charge is for nobody to refuse, but for the account to know.

// offerChange lets a perfect central limiter know at once. The caller holds mu.
func (j *judge) offerChange(r *request) {
	switch {
	case r.event == charging:
		j.account(r.key).central.Owe(r.asked, r.cost)
	case r.event == refunding && r.ideal:
		j.account(r.key).central.Return(r.asked, r.cost)
	}
}

// change judges a refund, a charge or an audit that counts next.
func (j *judge) change(r *request) {
	a, admission := j.account(r.key), oracle.Admission{At: r.at, Cost: r.cost}
	switch r.event {
	case refunding, refunded:
		for _, c := range []*oracle.Checker{&a.limit, &a.promise, j.localOf(r.key)} {
			switch {
			case c == nil:
			case r.event == refunding:
				c.Refunding(r.cost)
			default:
				c.Refunded(admission)
			}
		}
	}
	switch r.event {
	case charging:
		a.ours.Owe(r.at, r.cost)
	case refunded:
		a.ours.Return(r.at, r.cost)
	}
	if a.tab != nil {
		changeTab(a.tab, r, admission)
	}
}

func changeTab(t *oracle.Tab, r *request, admission oracle.Admission) {
	switch r.event {
	case refunding:
		t.Refunding(admission)
	case refunded:
		t.Refunded(admission)
	case charging:
		t.Charging(admission)
	case charged:
		t.Charged(admission, r.asked)
	case forgotten:
		t.Forgotten(admission, r.asked)
	case audited:
		t.Audit(r.at, r.used)
	}
}

// holdTab checks what is promised of charges.
func (f *Figures) holdTab(key int, t *oracle.Tab) {
	if t == nil || len(f.Problem) >= mostProblems {
		return
	}
	if err := t.Err(); err != nil {
		f.Problem = append(f.Problem, fmt.Errorf("key %d breaks the promise of refunds and charges: %w", key, err))
	}
}
