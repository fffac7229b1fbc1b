package modelcheck

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/slice"
)

// The book judges a history as the oracle does, which knows nothing of it.
func TestTheBookJudgesAsTheOracleDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, count, seconds := rapid.Int64Range(1, 30).Draw(t, "burst"), rapid.Int64Range(1, 30).Draw(t, "count"), rapid.Int64Range(1, 60).Draw(t, "s")
		period := time.Duration(seconds) * time.Second
		rule, limit := slice.Rule{Burst: b, Rate: float64(count) / float64(seconds*sec)}, oracle.New(count, period, b)
		if rapid.Bool().Draw(t, "window") {
			rule.Window, limit = seconds*sec, oracle.NewWindow(b, period)
		}
		m, checker, worst := NewMachine(Setup{Rules: []slice.Rule{rule}}), oracle.NewChecker(limit), -float64(b)
		w := m.Start()
		for range rapid.IntRange(1, 50).Draw(t, "length") {
			m.pass(&w, rapid.Int64Range(0, 20*sec).Draw(t, "gap"))
			w.book.enter(m.windowOf(w.clock()))
			cost := rapid.Int64Range(1, 10).Draw(t, "cost")
			m.admit(&w, cost)
			checker.Add(oracle.Admission{At: w.now * 1000, Cost: cost})
			worst = max(worst, w.book.debts[0]-m.bound(&w.book, 0))
		}
		if r := checker.Report(); math.Abs(r.Excess-worst) > 1e-6 || r.Held() != (worst <= slack) {
			t.Fatalf("the oracle says %v, the book %g", r, worst)
		}
	})
}

// A fault permits its leeway to the intervals that touch its span, and nothing
// to those that begin later.
func TestAFaultPermitsItsLeewayOnce(t *testing.T) {
	m := NewMachine(small(1, 2, 60, 0.001).with(Faults{Losses: 1}))
	w := m.Start()
	admits := func(cost int64) bool {
		m.admit(&w, cost)
		return m.overdrawn(&w.book) == ""
	}
	if !admits(2) || !m.apply(&w, Action{op: forget}) || !admits(2) {
		t.Error("two bursts around a fault")
	}
	before := w
	if admits(1) {
		t.Error("more than two bursts around a fault")
	}
	w = before
	m.apply(&w, Action{op: wait})
	m.apply(&w, Action{op: wait})
	if w.book.over != 1 || admits(1) {
		t.Error("an interval that touches the span permits another burst")
	}
	w.book.debts[0] = 0 // as if that interval had been long
	if !admits(1) || admits(1) {
		t.Error("one burst in an interval that begins later")
	}
}
