package modelcheck

import (
	"fmt"

	"github.com/hybridlimit/hybrid/slice"
)

// Book judges what was admitted, as internal/oracle does.
//
// A debt is what was admitted and has not been refilled: the greatest, over all
// intervals that end now, of admitted − r·t. Compared with the burst at each
// admission it judges every interval there is. In a window it is the count.
//
// A fault that loosens the promise does so for the intervals that touch its
// span. So there is one debt of all intervals, and after each span one of those
// that begin later.
type Book struct {
	debts  [maxLeeway + 1]float64 // debts[j]: of intervals that begin after the end of span j-1
	ends   [maxLeeway]int64       // µs of true time: until then leases of before may live
	epochs [maxLeeway]int64       // of the store's clock: until then it hears of them
	leeway [maxLeeway]float64     // tokens that each fault permits
	faults uint8
	over   uint8 // spans that have ended
	again  bool  // the last step of the clock back is among the faults

	// used is what was admitted or charged, and has neither drained nor been given back:
	// charges from when they are made. See charged.go.
	used float64

	// Windows are those of the account's clock. It steps back only when the key
	// is lost or expires while the store's clock is behind; what was counted of a
	// window then counts on.
	window int64               // the present one
	newest int64               // the newest there was
	counts [maxWindows]float32 // debts[0] of the others, by window modulo maxWindows
}

// maxWindows is how many windows a clock can step back.
const maxWindows = 8

// slack is what the arithmetic may be wrong by.
const slack = 1e-6

// admit books an admission.
func (m *Machine) admit(w *World, cost int64) {
	b := &w.book
	m.total += max(0, cost)
	for j := range int(b.over) + 1 {
		b.debts[j] = max(0, b.debts[j]+float64(cost))
	}
	m.owe(w, cost)
}

// bound is the most that the debt of the intervals after span j-1 may be.
func (m *Machine) bound(b *Book, j int) float64 {
	most := m.burst()
	for _, l := range b.leeway[j:b.faults] {
		most += l
	}
	return most
}

// overdrawn returns by how much the promise is broken.
func (m *Machine) overdrawn(b *Book) string {
	for j := range int(b.faults) + 1 {
		if most := m.bound(b, j); b.debts[j] > most+slack {
			return fmt.Sprintf("promise: %.6g admitted beyond the refill in an interval, allowed %.6g", b.debts[j], most)
		}
	}
	return ""
}

// pass lets time pass.
func (m *Machine) pass(w *World, us int64) {
	earning := float64(us) - m.inDebt(w, us)
	w.now += us
	w.peak = max(w.peak, w.clock())
	debts := &w.book.debts
	for j := range debts {
		debts[j] = max(0, debts[j]-m.rate()*earning)
	}
	w.book.used = max(0, w.book.used-m.rate()*float64(us))
}

// enter makes a window the present one.
func (b *Book) enter(window int64) {
	if window == b.window {
		return
	}
	b.counts[b.window%maxWindows] = float32(b.debts[0])
	for ; b.newest < window; b.newest++ {
		b.counts[(b.newest+1)%maxWindows] = 0
	}
	b.window, b.used = window, 0
	b.debts = [maxLeeway + 1]float64{float64(b.counts[window%maxWindows])}
}

// fault loosens the promise for the intervals that touch its span.
func (m *Machine) fault(w *World, leeway float64) {
	b, i := &w.book, w.book.faults
	b.ends[i] = w.now + max(leaseLife(w.clock()), leaseLife(w.peak))
	b.epochs[i] = epochOf(w.peak) + 2
	if i > 0 {
		b.ends[i], b.epochs[i] = max(b.ends[i], b.ends[i-1]), max(b.epochs[i], b.epochs[i-1])
	}
	b.leeway[i] = leeway
	b.faults++
}

// leaseLife is how long a lease lives that is granted at a moment of the store's
// clock: no older one lives longer.
func leaseLife(clock int64) int64 { return (epochOf(clock)+2)*slice.Epoch - clock }

// endSpans ends the spans whose faults have no more effect: leases of before the
// fault are over with the next epoch, and none is renewed beside what others were
// granted.
func (m *Machine) endSpans(w *World) {
	b := &w.book
	for b.over < b.faults && !w.uncertain(b.over) {
		b.over++
	}
}

// uncertain reports whether leases of before a fault may still live or be
// spoken of.
func (w *World) uncertain(fault uint8) bool {
	return w.now < w.book.ends[fault] || epochOf(w.clock()) < w.book.epochs[fault]
}
