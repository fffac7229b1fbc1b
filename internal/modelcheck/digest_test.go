package modelcheck

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// Digests leave out what does not matter: no world that differs in something
// else is taken for known. With worlds told apart by all that they are, a flaw is
// found by the same number of steps.
func TestDigestsHideNothing(t *testing.T) {
	for _, f := range append(flawedWorlds, flawedWindows...) {
		if f.steps > 7 || f.found == "asks" {
			continue
		}
		t.Run(f.flaw.String(), func(t *testing.T) {
			f.Flaw = f.flaw
			m := NewMachine(f.Setup)
			s := &Search{Machine: m, Depth: f.steps}
			if got, want := s.Run().Depth, plainDepth(m, f.steps); got != want {
				t.Errorf("found by %d steps, without digests by %d", got, want)
			}
		})
	}
}

// plainDepth searches without digests.
func plainDepth(m *Machine, most int) int {
	edge, known := []World{m.Start()}, map[World]bool{}
	for depth := 1; depth <= most; depth++ {
		var next []World
		for _, from := range edge {
			for _, a := range m.actions(&from, nil) {
				w := from
				if !m.apply(&w, a) || m.broken == "" && known[w] {
					continue
				}
				if m.check(&w) != "" {
					return depth
				}
				known[w] = true
				next = append(next, w)
			}
		}
		edge = next
	}
	return 0
}

// An account that has drained up to some moment goes on as one that has not been
// looked at: hence the digest may take the one for the other.
func TestAnAccountDrainsInPartsAsAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := slice.Rule{Burst: 8, Rate: math.Ldexp(1, -rapid.IntRange(21, 27).Draw(t, "rate"))} // exact in doubles
		if rapid.Bool().Draw(t, "window") {
			rule.Window = 90 * sec
		}
		young, old := rapid.Int64Range(0, 4).Draw(t, "young"), rapid.Int64Range(0, 4).Draw(t, "old")
		used := float64(young + old + rapid.Int64Range(0, 8).Draw(t, "spent"))
		a := ledger.Account{Stored: used > 0, At: start, Used: used, Young: float64(young), Old: float64(old)}
		if !a.Stored {
			a = ledger.Account{}
		}
		first := start + rapid.Int64Range(0, 200*sec).Draw(t, "first")
		second := first + rapid.Int64Range(0, 200*sec).Draw(t, "second")
		b := drained(a, first, rule)
		if x, y := drained(a, second, rule), drained(b, second, rule); x != y {
			t.Fatalf("%+v at once, %+v in parts, by %+v", x, y, b)
		}
	})
}
