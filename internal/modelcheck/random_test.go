package modelcheck

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/slice"
)

// drawSetup draws a world that is too large to be searched: up to four nodes, a
// burst of hundreds, any rate, and times at which nothing falls together.
func drawSetup(t *rapid.T, windows bool) Setup {
	b := rapid.Int64Range(1, 400).Draw(t, "burst")
	fill := rapid.Float64Range(0.5, 600).Draw(t, "fill, s")
	s := Setup{
		Nodes:    rapid.IntRange(1, maxNodes).Draw(t, "nodes"),
		Rules:    []slice.Rule{{Burst: b, Rate: float64(b) / (fill * sec)}},
		Costs:    []int64{1, rapid.Int64Range(1, b).Draw(t, "cost")},
		Asks:     rapid.SliceOfN(drawAsk(b), 3, 8).Draw(t, "asks"),
		Steps:    rapid.SliceOfN(rapid.Int64Range(1000, 70*sec), 4, 4).Draw(t, "steps"),
		Edges:    true,
		Jumps:    []int64{rapid.Int64Range(1, 200*sec).Draw(t, "forward"), -rapid.Int64Range(1, 200*sec).Draw(t, "back")},
		Patience: rapid.SampledFrom([]int64{0, sec, 200 * sec}).Draw(t, "patience"),
		Faults:   drawFaults(t),
	}
	if s.Faults.Changes > 0 {
		s = s.unlike(t)
	}
	if windows {
		s = s.windowed(rapid.Int64Range(30, 200).Draw(t, "window, s")) // no step back is longer than maxWindows
	}
	return s
}

// unlike adds another limit, which may be so low that what the first one used is
// no debt.
func (s Setup) unlike(t *rapid.T) Setup {
	of := s.Rules[0]
	s.Rules = append(s.Rules, slice.Rule{
		Burst: rapid.Int64Range(1, of.Burst).Draw(t, "other burst"),
		Rate:  of.Rate * rapid.Float64Range(0.1, 1).Draw(t, "other rate"),
	})
	return s
}

func drawAsk(burst int64) *rapid.Generator[Ask] {
	return rapid.Custom(func(t *rapid.T) Ask {
		a := Ask{Keep: rapid.SampledFrom([]int64{0, all, burst / 2}).Draw(t, "keep")}
		if rapid.Bool().Draw(t, "has needs") {
			a.Keep = 0
			a.Needs = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) slice.Need {
				return slice.Need{Cost: rapid.Int64Range(1, burst).Draw(t, "cost"), Count: rapid.Int64Range(1, 3).Draw(t, "count")}
			}), 1, 3).Draw(t, "needs")
			if rapid.IntRange(0, 3).Draw(t, "waits") == 0 {
				a.Needs[len(a.Needs)-1].Count = 0
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "wants") > 0 {
			a.Want = rapid.Int64Range(1, burst).Draw(t, "want")
			a.Least = rapid.Int64Range(1, 3).Draw(t, "least")
			a.Unit = rapid.Int64Range(1, 3).Draw(t, "unit")
			a.Divisor = rapid.Int64Range(1, 8).Draw(t, "divisor")
		}
		if rapid.IntRange(0, 7).Draw(t, "charges") == 0 {
			a.Charged = float64(rapid.Int64Range(-burst, burst).Draw(t, "charged"))
			a.Fallback = float64(rapid.Int64Range(0, burst).Draw(t, "fallback"))
		}
		return a
	})
}

// drawFaults draws how much may go wrong. Twice at most the promise is loosened.
func drawFaults(t *rapid.T) Faults {
	few := func(name string) uint8 {
		return rapid.SampledFrom([]uint8{0, 0, 3, 20}).Draw(t, name)
	}
	f := Faults{Lost: few("lost"), NotRun: few("not run"), Crashes: few("crashes"), Refunds: few("refunds"), Changes: few("changes"), Charges: few("charges")}
	for range rapid.IntRange(0, maxLeeway).Draw(t, "store faults") {
		switch rapid.IntRange(0, 2).Draw(t, "fault") {
		case 0:
			f.Losses++
		case 1:
			f.Copies, f.Failovers = f.Copies+2, f.Failovers+1
		default:
			f.Jumps++
		}
	}
	return f
}

// pick draws what happens next: first of what kind, or the rare would drown.
func pick(t *rapid.T, m *Machine, w *World) Action {
	actions := m.actions(w, nil)
	var kinds []Op
	for _, a := range actions {
		if !slices.Contains(kinds, a.op) {
			kinds = append(kinds, a.op)
		}
	}
	kind := kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "op")]
	actions = slices.DeleteFunc(actions, func(a Action) bool { return a.op != kind })
	return actions[rapid.IntRange(0, len(actions)-1).Draw(t, "action")]
}

// However larger fleets behave, the protocol keeps what small ones keep.
func TestRandomHistoriesOfLargerWorlds(t *testing.T) {
	for name, windows := range map[string]bool{"bucket": false, "window": true} {
		for range 10 { // as many times as rapid checks a property
			t.Run(name, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { wander(t, drawSetup(t, windows)) })
			})
		}
	}
}

// wander draws a history, and checks every world that it passes.
func wander(t *rapid.T, s Setup) {
	m := NewMachine(s)
	w := m.Start()
	var trace []Action
	for range rapid.IntRange(10, 300).Draw(t, "length") {
		a, next := pick(t, m, &w), w
		if !m.apply(&next, a) {
			continue
		}
		w, trace = next, append(trace, a)
		if broken := m.check(&w); broken != "" {
			fail(t, m, trace, broken)
		}
	}
	if broken := m.stuck(&w); broken != "" {
		fail(t, m, trace, broken)
	}
}

func fail(t *rapid.T, m *Machine, trace []Action, broken string) {
	for _, line := range m.Tell(trace) {
		t.Log(line)
	}
	t.Fatal(broken)
}
