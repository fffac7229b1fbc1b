package modelcheck

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/slice"
)

// Digests leave out what does not matter: whatever worlds can be reached are
// reached, too, when only one of each digest is followed.
func TestDigestsHideNothing(t *testing.T) {
	depth := 6
	if *depthFlag > 0 {
		depth = *depthFlag
	}
	for _, w := range worlds {
		t.Run(w.name+"/bucket", func(t *testing.T) { hidesNothing(t, w.Setup, depth) })
		t.Run(w.name+"/window", func(t *testing.T) { hidesNothing(t, w.windowed(90), depth) })
	}
}

// A slice of which a part is kept while more is wanted, in windows: what is reported in vain is
// the same however much of it was to be kept.
func TestDigestsHideNothingOfASliceThatGrows(t *testing.T) {
	grows := small(2, 4, 20, 0.75).asking(Ask{Keep: 1, Want: 2, Least: 1, Unit: 1, Divisor: 1})
	for _, seconds := range []int64{90, 60, 45} {
		t.Run(fmt.Sprint(seconds, " s"), func(t *testing.T) { hidesNothing(t, grows.windowed(seconds), 7) })
	}
}

func hidesNothing(t *testing.T, setup Setup, depth int) {
	t.Parallel()
	s := &Search{Machine: NewMachine(setup), Depth: depth}
	s.Run()
	all := reachable(s.Machine, depth)
	for w := range all {
		if debt, known := s.visited[s.digest(&w)]; !known || debt < w.book.debts[0] {
			t.Fatalf("a world was not reached: %s", s.show(&w))
		}
	}
	t.Logf("%d worlds, %d digests", len(all), len(s.visited))
}

// reachable follows all worlds that differ in anything.
func reachable(m *Machine, depth int) map[World]bool {
	edge, known := []World{m.Start()}, map[World]bool{m.Start(): true}
	for range depth {
		var next []World
		for _, from := range edge {
			for _, a := range m.actions(&from, nil) {
				w := from
				if m.apply(&w, a) && !known[w] {
					known[w] = true
					next = append(next, w)
				}
			}
		}
		edge = next
	}
	return known
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
