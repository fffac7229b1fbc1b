package modelcheck

import (
	"slices"

	"github.com/hybridlimit/hybrid/slice"
)

const sec = 1_000_000 // µs

// world is a setup that is searched as a bucket and as a window.
type world struct {
	name  string
	depth int // within the time of an ordinary test run
	Setup
}

// needs are one request of each cost, in order.
func needs(costs ...int64) (n []slice.Need) {
	for _, c := range costs {
		n = append(n, slice.Need{Cost: c, Count: 1})
	}
	return n
}

// turn is a request that may wait.
func turn(cost int64) Ask { return Ask{Needs: []slice.Need{{Cost: cost}}} }

// small is a world of n nodes and a burst of b, in which step seconds pass at
// once and perStep tokens come back in them. Its nodes ask for the whole burst,
// refill and return.
func small(n int, b int64, step int64, perStep float64) Setup {
	return Setup{
		Nodes:    n,
		Rules:    []slice.Rule{{Burst: b, Rate: perStep / float64(step*sec)}},
		Costs:    []int64{1},
		Asks:     []Ask{{Needs: needs(b)}, {Keep: all, Want: b}, {}},
		Steps:    []int64{step * sec},
		Patience: step * sec,
	}
}

func (s Setup) with(f Faults) Setup {
	s.Faults = f
	return s
}

func (s Setup) asking(more ...Ask) Setup {
	s.Asks = slices.Concat(s.Asks, more)
	return s
}

func (s Setup) jumping(seconds ...int64) Setup {
	s.Faults.Jumps = 1
	for _, n := range seconds {
		s.Jumps = append(s.Jumps, n*sec)
	}
	return s
}

func (s Setup) costing(tokens ...int64) Setup {
	s.Costs = tokens
	return s
}

// passing adds a time that may pass.
func (s Setup) passing(seconds int64) Setup {
	s.Steps = append(slices.Clone(s.Steps), seconds*sec)
	return s
}

// waiting sets how many seconds nodes wait for replies; 0 = for ever.
func (s Setup) waiting(seconds int64) Setup {
	s.Patience = seconds * sec
	return s
}

// windowed makes windows of the limits, which end neither with epochs nor with
// leases.
func (s Setup) windowed(seconds int64) Setup {
	s.Rules = slices.Clone(s.Rules)
	for i := range s.Rules {
		s.Rules[i].Window = seconds * sec
	}
	return s
}

// changing adds a limit that is lower in burst and rate.
func (s Setup) changing(b int64, rate float64) Setup {
	s.Rules = append(slices.Clone(s.Rules), slice.Rule{Burst: b, Rate: s.Rules[0].Rate * rate})
	s.Faults.Changes = 2
	return s
}

// worlds are small enough to be searched far. Each is about one or two of the
// things that can go wrong, and the last about all of them.
var worlds = []world{
	{"calm, and searched whole", 40, small(2, 2, 60, 1)},
	{"calm", 16, small(2, 2, 30, 0.5)},
	{"calm, three nodes", 12, small(3, 2, 30, 1)},
	{"calm, finer time", 13, small(2, 2, 15, 0.5)},
	{"calm, replies whenever they come", 12, small(2, 2, 30, 0.5).waiting(0)},
	{"timers that are late", 10, small(2, 2, 59, 59).passing(1)}, // 118 s and 119 s are within the guard of a lease of 120 s
	{"costs and shares", 9, small(2, 4, 20, 0.75).costing(1, 3).asking(
		Ask{Needs: needs(3, 1), Want: 4, Unit: 2, Divisor: 2}, Ask{Keep: 1}, Ask{Keep: 3, Want: 3, Least: 2})},
	{"lost settles", 11, small(2, 2, 30, 0.5).with(Faults{Lost: 2})},
	{"one node of four tokens", 13, small(1, 4, 20, 0.75).with(Faults{Lost: 1, NotRun: 1}).asking(
		Ask{Needs: needs(1)}, Ask{Keep: 1})},
	{"crashes", 10, small(2, 2, 30, 0.5).with(Faults{Crashes: 2, Lost: 1})},
	{"three nodes, a crash and a lost settle", 9, small(3, 2, 30, 1).with(Faults{Crashes: 1, Lost: 1})},
	{"settles that did not run, refunds", 11, small(2, 2, 30, 0.5).with(Faults{NotRun: 2, Refunds: 2})},
	{"charges", 9, small(2, 2, 30, 0.5).with(Faults{Lost: 1}).asking(
		Ask{Charged: 1}, Ask{Charged: -1}, Ask{Keep: all, Fallback: 1})},
	{"refunds and charges", 8, small(2, 2, 30, 0.5).with(Faults{Refunds: 2, Charges: 2})},
	{"refunds and charges, lost settles", 8, small(2, 2, 30, 0.5).with(Faults{Refunds: 1, Charges: 1, Lost: 2})},
	{"refunds and charges, one node", 9, small(1, 2, 30, 0.5).with(Faults{Refunds: 2, Charges: 3, Lost: 1, NotRun: 1}).asking(Ask{Needs: needs(1)})},
	{"charges, crashes and settles that did not run", 8, small(2, 2, 30, 0.5).with(Faults{Charges: 2, Crashes: 1, NotRun: 1})},
	{"the store loses its data", 12, small(2, 2, 30, 0.5).with(Faults{Losses: 1})},
	{"the store loses its data, and leases go on", 13, small(2, 2, 60, 1).with(Faults{Losses: 1})},
	{"the store loses its data twice", 10, small(2, 2, 60, 1).with(Faults{Losses: 2, Lost: 1})},
	{"a replica that is behind", 11, small(2, 2, 30, 0.5).with(Faults{Copies: 1, Failovers: 1})},
	{"the clock steps forward", 11, small(2, 2, 30, 0.5).jumping(30, 120)},
	{"the clock steps back", 11, small(2, 2, 30, 0.5).jumping(-30, -90)},
	{"the clock steps far back", 10, small(2, 2, 30, 0.5).jumping(-150, -300)},
	{"the clock steps far back, to where it was", 12, small(2, 2, 60, 1).jumping(-180)},
	{"the clock steps far back, and forward", 10, small(1, 2, 60, 2).jumping(-180, 180).with(Faults{Jumps: 2})},
	{"the clock steps back and forward", 11, small(1, 2, 60, 2).jumping(-60, 60).with(Faults{Jumps: 2})},
	{"another limit", 10, small(2, 4, 30, 1).changing(2, 0.5)},
	{"another limit, one node", 14, small(1, 4, 30, 1).changing(1, 0.5)},
	{"another limit of the same rate", 12, small(1, 4, 30, 0.5).changing(1, 1).asking(Ask{Needs: needs(1)})},
	{"another limit, two nodes", 9, small(2, 4, 30, 0.5).changing(1, 1)},
	{"turns, one node", 11, small(1, 2, 30, 3).asking(turn(2)).with(Faults{Lost: 1})},
	{"turns", 8, small(2, 2, 30, 0.5).asking(turn(2), turn(1))},
	{"turns, refunds and lost replies", 7, small(2, 2, 30, 0.5).asking(turn(2)).with(Faults{Refunds: 2, Lost: 1})},
	{"turns that outlast a lease", 8, small(2, 2, 60, 0.5).asking(turn(2)).with(Faults{Refunds: 1, Lost: 1})},
	{"turns, charges, crashes and another limit", 7, small(2, 4, 30, 1).changing(2, 0.5).asking(turn(3)).with(Faults{Charges: 1, Crashes: 1, Changes: 1})},
	{"everything", 8, small(2, 2, 30, 0.5).changing(1, 0.5).with(
		Faults{Lost: 1, NotRun: 1, Crashes: 1, Losses: 1, Copies: 1, Failovers: 1, Changes: 1, Refunds: 1})},
}
