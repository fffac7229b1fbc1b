package precheck

import (
	"fmt"
	"hash/maphash"
	"testing"

	"pgregory.net/rapid"
)

// explorer visits every sequence of actions up to a depth, and each world once
// per depth that is left.
type explorer struct {
	seen map[uint64]int
	seed maphash.Seed
}

func (e *explorer) visit(w world, depth int) error {
	if err := w.check(); err != nil || depth == 0 {
		return err
	}
	id := maphash.String(e.seed, w.String())
	if e.seen[id] >= depth {
		return nil
	}
	e.seen[id] = depth
	next := w.clone()
	next.tick()
	if err := e.visit(next, depth-1); err != nil {
		return fmt.Errorf("tick, %w", err)
	}
	return e.visitActs(w, depth)
}

func (e *explorer) visitActs(w world, depth int) error {
	for i := range w.nodes {
		for what := range acts {
			next := w.clone()
			next.act(i, what)
			if err := e.visit(next, depth-1); err != nil {
				return fmt.Errorf("node %d does %d, %w", i, what, err)
			}
		}
	}
	return nil
}

// In every small fleet, whatever its nodes do, the floors together never admit
// more than one bucket of the whole size would.
func TestFloorsNeverExceedTheWholeExhaustively(t *testing.T) {
	cases := []struct {
		nodes, up, lapsed, depth int
		whole                    Size
	}{
		{1, 1, 0, 9, Size{Cap: 3, Rate: perTick(1)}},
		{2, 2, 0, 7, Size{Cap: 4, Rate: perTick(1)}},
		{2, 1, 0, 7, Size{Cap: 4, Rate: perTick(2)}},
		{2, 0, 0, 7, Size{Cap: 4, Rate: perTick(4)}},
		{3, 3, 0, 6, Size{Cap: 6, Rate: perTick(1.5)}},
		{3, 2, 0, 6, Size{Cap: 6, Rate: perTick(3)}},
		{3, 1, 0, 6, Size{Cap: 2, Rate: perTick(1)}},
		{2, 2, 1, 7, Size{Cap: 4, Rate: perTick(0.5)}},
		{2, 2, 2, 7, Size{Cap: 4, Rate: perTick(0.5)}},
		{3, 3, 1, 6, Size{Cap: 6, Rate: perTick(0.5)}},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%d of %d nodes, %d lapsed", c.up, c.nodes, c.lapsed), func(t *testing.T) {
			t.Parallel()
			depth := c.depth
			if testing.Short() || raceEnabled {
				depth -= 2
			}
			e := explorer{seen: map[uint64]int{}, seed: maphash.MakeSeed()}
			w := newWorld(c.nodes, c.up, c.whole)
			w.silence(c.lapsed)
			if err := e.visit(w, depth); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d worlds", len(e.seen))
		})
	}
}

// The same for larger fleets and long histories, at random: more changes of the
// fleet than a history keeps.
func TestFloorsNeverExceedTheWholeInLongHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
		whole := Size{
			Cap:  float64(rapid.IntRange(1, 20).Draw(t, "cap")),
			Rate: perTick(rapid.Float64Range(0.01, 8).Draw(t, "rate")),
		}
		up := rapid.IntRange(0, nodes).Draw(t, "up")
		w := newWorld(nodes, up, whole)
		w.silence(rapid.IntRange(0, up).Draw(t, "lapsed"))
		steps := rapid.SliceOfN(rapid.IntRange(-2*nodes, nodes*acts-1), 50, 400).Draw(t, "steps")
		for _, s := range steps {
			if s < 0 {
				w.tick()
			} else {
				w.act(s/acts, s%acts)
			}
			if err := w.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
