package oracle

import (
	"fmt"
	"math"
	"time"
)

// Tab judges one account of which charges and refunds become known later. Nobody
// could refuse a charge, so it may exceed any bound itself; what the tab holds is
// that nothing is admitted because of it, and that nobody forgets it:
//
//   - time in debt earns nothing. In every interval no more is admitted, less what
//     is given back, than B + r·(t − d), where d is how long of it the account was
//     in debt: more than B used, which only charges do;
//   - what was used is known. The account has at least as much used as was admitted
//     and charged, and has not been given back or drained; see [Tab.Audit].
//
// When exactly a charge or a refund takes effect is not known, only that it does so
// between two moments. The tab takes each to be when it serves the account best, so
// that what it finds broken is broken.
//
// Of admissions it takes those that the account made, not those of floors or of a
// failure policy. It keeps two sums, both in constant memory. Let Φ be what is used
// and not in a slice. A charge that counts early and a refund that counts late leave
// less behind, since both have drained or are clipped at 0; so used, less what is
// pending, never exceeds Φ. And standing never exceeds the part of Φ below B, which
// drains only out of debt.
type Tab struct {
	limit Limit
	at    int64
	begun bool

	used     float64 // charges count when they are made, refunds when they are over
	standing float64 // admitted, less refunds; it does not drain in debt
	charges  float64 // pending
	refunds  float64 // pending

	excess, lack float64 // the worst so far
	excessAt     int64
	lackAt       int64
	known        float64 // what the account knew at lackAt
}

// NewTab is an account that nobody has used.
func NewTab(l Limit) *Tab {
	return &Tab{limit: l, excess: -l.burst, lack: math.Inf(-1)}
}

// Admit takes an admission. Times of all methods do not fall.
func (t *Tab) Admit(a Admission) {
	t.advance(a.At)
	t.used += float64(a.Cost)
	t.standing += float64(a.Cost)
	if excess := t.standing - t.refunds - t.limit.burst; excess > t.excess {
		t.excess, t.excessAt = excess, a.At
	}
}

// Charging takes a charge that takes effect at this time or later.
func (t *Tab) Charging(a Admission) {
	t.advance(a.At)
	t.used += float64(a.Cost)
	t.charges += float64(a.Cost)
}

// Charged says that a charge made at a moment has taken effect by now. One of a
// window that is over concerns nobody any more.
//
// An account goes no further into debt than to 2·B. Slices may hold as much of that as
// the admissions leave free, so the charges are known to count up to B beyond these.
func (t *Tab) Charged(a Admission, made int64) {
	t.advance(a.At)
	if t.over(made) {
		return
	}
	before := t.used - t.charges
	t.charges -= float64(a.Cost)
	most := max(before, t.limit.burst+max(t.standing-t.refunds, 0))
	t.used -= max(0, t.used-t.charges-most)
}

// over reports whether a moment was in a window that is over.
func (t *Tab) over(made int64) bool {
	w := t.limit.window
	return w > 0 && windowOf(made, w) != windowOf(t.at, w)
}

// Forgotten says that a charge made at a moment need not take effect any more: nobody
// was there to pay for telling it before it had drained. How much of it has drained
// cannot be told, so all of it is taken out.
func (t *Tab) Forgotten(a Admission, made int64) {
	t.advance(a.At)
	if t.over(made) {
		return
	}
	t.charges -= float64(a.Cost)
	t.used = max(0, t.used-float64(a.Cost))
}

// Refunding takes a refund that takes effect at this time or later.
func (t *Tab) Refunding(a Admission) {
	t.advance(a.At)
	t.refunds += float64(a.Cost)
}

// Refunded says that a refund has taken effect by now.
func (t *Tab) Refunded(a Admission) {
	t.advance(a.At)
	t.refunds -= float64(a.Cost)
	t.used = max(0, t.used-float64(a.Cost))
	t.standing = max(0, t.standing-float64(a.Cost))
}

// Audit compares with what the store has in its books.
func (t *Tab) Audit(at int64, used float64) {
	t.advance(at)
	lack := t.surely() - used
	if used < 0 {
		lack = max(lack, -used) // more than the limit is free
	}
	if lack > t.lack {
		t.lack, t.lackAt, t.known = lack, at, used
	}
}

// surely is what is used at least.
func (t *Tab) surely() float64 { return t.used - t.charges - t.refunds }

// advance drains up to a moment. What is pending stays.
func (t *Tab) advance(at int64) {
	passed := float64(at - t.at)
	if w := t.limit.window; w > 0 && t.begun && windowOf(at, w) != windowOf(t.at, w) {
		t.used, t.standing, t.charges = 0, 0, 0
	}
	if !t.begun {
		passed, t.begun = 0, true
	}
	t.at = at
	if t.limit.rate == 0 {
		return
	}
	debt := min(passed, max(0, t.surely()-t.limit.burst)/t.limit.rate)
	t.standing = max(0, t.standing-t.limit.rate*(passed-debt))
	t.used = max(0, t.used-t.limit.rate*passed)
}

// slack is what rounding may come to: of sums, and of times to whole microseconds.
func (t *Tab) slack() float64 {
	return 1e-6*max(t.limit.burst, 1) + t.limit.rate*float64(5*time.Microsecond)
}

// Err is nil unless something was admitted because of a charge, or forgotten.
func (t *Tab) Err() error {
	switch {
	case t.excess > t.slack():
		return fmt.Errorf("oracle: with its charges %+.3f against the bound, at %d ns", t.excess, t.excessAt)
	case t.lack > t.slack():
		return fmt.Errorf("oracle: the account knows of %.3f used at %d ns, %.3f less than there were", t.known, t.lackAt, t.lack)
	}
	return nil
}
