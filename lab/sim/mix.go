package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Mix is a random fleet in which everything goes wrong that may, by a seed: limits,
// loads and faults are drawn. Whatever happens, its promise must hold.
func Mix(seed uint64) Experiment {
	rng := Experiment{Seed: seed}.random("mix")
	e := Experiment{
		Seed:      seed,
		Limit:     pick(rng, mixedLimits),
		Accuracy:  pick(rng, mixedAccuracies),
		OnFailure: pick(rng, []hybrid.FailurePolicy{hybrid.FailClosed, hybrid.FailLocal, hybrid.FailLocal, hybrid.FailOpen}),
		Nodes:     2 + rng.IntN(5),
		Trip:      pick(rng, mixedTrips),
		Keys:      1 + rng.IntN(3),
		Mixed:     true,
		Arrivals:  pick(rng, mixedArrivals),
		Warm:      findEachOther,
		Span:      mixSpan,
	}
	e.Cost = 1 + rng.Int64N(min(max(e.Limit.Burst()/10, 1), 5))
	e.Scenes = mixScenes(rng)
	e.Faults = mixFaults(rng)
	if silent := e.random("silence"); silent.IntN(2) == 0 {
		e.fallSilent(silent)
	}
	if later := e.random("later"); later.IntN(4) > 0 {
		e.changeLater(later)
	}
	if besides := e.random("besides"); besides.IntN(2) == 0 {
		e.doBesides(besides)
	}
	e.endInTime()
	if e.OnFailure == hybrid.FailLocal {
		e.knowItsSize()
	}
	return e
}

// knowItsSize gives FailLocal what its promise needs: nodes that know how many they
// may be. One that has just started and cannot ask knows of nobody; and those that
// still reach the store have lost sight of the ones that do not, after the TTL of a
// registration, and think that there are fewer who share.
func (e *Experiment) knowItsSize() {
	e.Servers = e.Nodes
	for _, f := range e.Faults {
		e.Servers += int(one(f.Kind == Join))
	}
}

// fallSilent lets the scenes end with a silence as long as a lease, or so, and then
// a crowd on all nodes: what is left of old leases is spent now or never. In half of
// the runs a node hears nothing of the store meanwhile, nor at the crowd's beginning.
func (e *Experiment) fallSilent(rng *rand.Rand) {
	from := e.Warm
	for _, s := range e.Scenes {
		from += s.For
	}
	silence := time.Duration(60_000+rng.IntN(70_000)) * time.Millisecond
	crowd := Scene{For: 10 * time.Second, Load: pick(rng, []float64{5, 20, 40}), Place: Uniform}
	e.Scenes = append(e.Scenes, Scene{For: silence}, crowd)
	e.Span = max(e.Span, from+silence+crowd.For-e.Warm)
	if rng.IntN(2) > 0 {
		return
	}
	from -= time.Duration(rng.IntN(5000)) * time.Millisecond
	to := from + silence + crowd.For
	e.Faults = slices.DeleteFunc(e.Faults, func(f Fault) bool { return f.Kind == Mend && f.At >= from && f.At < to })
	e.Faults = append(e.Faults, Fault{At: from, Kind: Hole, Node: rng.IntN(6)}, Fault{At: to, Kind: Mend})
	e.Faults.sort()
}

// changeLater lets costs become known later: some soon and some when what was admitted
// has long been refilled.
func (e *Experiment) changeLater(rng *rand.Rand) {
	delays := []time.Duration{20 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second, 40 * time.Second}
	if rng.IntN(4) > 0 {
		e.Refunds = Refunds{Part: pick(rng, []float64{0.05, 0.3, 1}), Delay: pick(rng, delays)}
	}
	if rng.IntN(4) > 0 || e.Refunds.Part == 0 {
		e.Charges = Charges{Part: pick(rng, []float64{0.002, 0.02, 0.2}), Delay: pick(rng, delays), Most: pick(rng, []float64{0.2, 1, 4})}
	}
}

// doBesides lets callers ask for several limits, flush and reset, and nodes forget keys.
func (e *Experiment) doBesides(rng *rand.Rand) {
	e.Aside = Aside{AllOf: pick(rng, []float64{0, 0.02, 0.2}), Flushes: pick(rng, []float64{0, 0.002, 0.02})}
	if !e.changesLater() {
		e.Aside.Resets = pick(rng, []float64{0, 0.001, 0.01})
	}
	e.MaxKeys = pick(rng, []int{0, 0, 1, 2, 5})
}

// endInTime lets all faults end before the run does.
func (e *Experiment) endInTime() {
	end := e.Warm + e.Span
	e.Faults = slices.DeleteFunc(e.Faults, func(f Fault) bool { return f.Kind.lasts() && f.At >= end })
	for i := range e.Faults {
		e.Faults[i].For = min(e.Faults[i].For, end-e.Faults[i].At)
	}
}

// mixSpan is long enough for leases of two epochs to end in it.
const mixSpan = 150 * time.Second

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

var (
	mixedLimits = []hybrid.Limit{
		hybrid.PerMinute(400), hybrid.PerMinute(60), hybrid.PerHour(3000), hybrid.Per(40, 20*time.Second),
		hybrid.PerSecond(8).WithBurst(20), hybrid.PerSecond(100).WithBurst(30), hybrid.PerMinute(5),
		hybrid.PerSecond(200).WithBurst(2), hybrid.PerSecond(100).WithBurst(1),
		hybrid.Window(100, 20*time.Second), hybrid.Window(30, time.Minute), hybrid.Window(50, 2*time.Second),
	}
	mixedAccuracies = []hybrid.Accuracy{hybrid.Strict, hybrid.Balanced, hybrid.Within(0.05, 0.1), hybrid.Within(0, 0.2), hybrid.Exact}
	mixedTrips      = []Trip{
		{Mean: 600 * time.Microsecond},
		{Kind: Exponential, Mean: 3 * time.Millisecond, High: 15 * time.Millisecond},
		{Kind: Uniformly, Low: time.Millisecond, High: 30 * time.Millisecond}, // longer than callers wait
	}
	mixedArrivals = []Arrivals{Poisson, Poisson, {Batch: 10}, {On: 2 * time.Second, Off: 5 * time.Second}}
)

// mixScenes is loads around and beyond the limit, in many places.
func mixScenes(rng *rand.Rand) (scenes Scenes) {
	for range 2 + rng.IntN(4) {
		scenes = append(scenes, Scene{
			For:   time.Duration(1+rng.IntN(20)) * time.Second,
			Load:  pick(rng, []float64{0.3, 0.9, 1.2, 2, 3}),
			Place: pick(rng, []Place{Uniform, Uniform, OneNode, Hopping, Least, ZipfNodes(1)}),
		})
	}
	return scenes
}

// mixFaults is something every few seconds. In one run of four the store loses
// data, and in one of four it is away for a while.
func mixFaults(rng *rand.Rand) (faults Faults) {
	kind := rng.IntN(4)
	for at := time.Duration(0); ; {
		at += time.Duration(rng.IntN(5000)) * time.Millisecond
		if at > findEachOther+mixSpan {
			return faults
		}
		faults = append(faults, mixFault(rng, at)...)
		if kind == 0 && rng.IntN(25) == 0 {
			lost := pick(rng, []FaultKind{Wipe, Stale})
			faults = append(faults, Fault{At: at, Kind: lost, For: time.Duration(1+rng.IntN(10_000)) * time.Millisecond})
		}
		if kind == 1 && rng.IntN(25) == 0 {
			faults = append(faults, Fault{At: at, Kind: Restart, For: time.Duration(1+rng.IntN(3000)) * time.Millisecond})
		}
	}
}

// mixFault is one thing that goes wrong, or all links become well.
func mixFault(rng *rand.Rand, at time.Duration) (faults Faults) {
	node := rng.IntN(6)
	switch rng.IntN(9) {
	case 0, 1, 2:
		for range 1 + rng.IntN(4) {
			faults = append(faults, Fault{At: at, Kind: Refuse + FaultKind(rng.IntN(4)), Node: node})
		}
	case 3:
		faults = append(faults, Fault{At: at, Kind: pick(rng, []FaultKind{Join, Join, Leave, Crash}), Node: node})
	case 4:
		faults = append(faults, Fault{At: at, Kind: Cut, Node: node})
	case 5:
		faults = append(faults, Fault{At: at, Kind: Hole, Node: node})
	case 6:
		length := pick(rng, []int{500, 5_000, 130_000}) // the last is longer than a lease
		faults = append(faults, Fault{At: at, Kind: Pause, Node: node, For: time.Duration(1+rng.IntN(length)) * time.Millisecond})
	default:
		faults = append(faults, Fault{At: at, Kind: Mend})
	}
	for i := range faults {
		if !faults[i].Kind.ofNode() {
			faults[i].Node = 0
		}
	}
	return faults
}
