package hybrid

import (
	"flag"
	"slices"
	"testing"
	"time"
)

var ratios = flag.Bool("ratios", false, "measure the speed ratios of TestSpeedRatios")

// slack is what a ratio may exceed its target by before the test fails: a busy
// machine must not fail it, a hot path twice as slow must.
const slack = 1.6

// TestSpeedRatios prints the first four rows of the speed table as ratios of
// medians of interleaved runs: go test -run TestSpeedRatios -ratios -v .
func TestSpeedRatios(t *testing.T) {
	if !*ratios {
		t.Skip("measures for a minute: give -ratios")
	}
	many, one, refusing := newRig(t, manyKeys, false), newRig(t, 1, false), newRig(t, 1, true)
	mustPath(t, many.l, many.keys[0], PathSlice)
	mustPath(t, one.l, one.keys[0], PathSlice)
	mustPath(t, refusing.l, refusing.keys[0], PathMemo)
	ns := measure(t, map[string]func(*testing.B){
		"allow":          many.bench("allow", false),
		"allow parallel": many.bench("allow", true),
		"bare":           many.bench("bare", false),
		"rate":           many.bench("rate", false),
		"rate parallel":  many.bench("rate", true),
		"hot":            one.bench("allow", true),
		"hot bare":       one.bench("bare", true),
		"one":            one.bench("allow", false),
		"memo":           refusing.bench("memo", false),
		"clock":          one.bench("clock", false),
	})
	for _, row := range []struct {
		what         string
		value, limit float64
	}{
		{"Allow on a slice ÷ (xsync Load + CAS), 64Ki keys", ns["allow"] / ns["bare"], 1.5},
		{"Allow ÷ x/time/rate behind the same map, serial", ns["allow"] / ns["rate"], 1 / 2.5},
		{"Allow ÷ x/time/rate behind the same map, parallel", ns["allow parallel"] / ns["rate parallel"], 1 / 2.5},
		{"one hot key, all cores ÷ (Load + contended CAS)", ns["hot"] / ns["hot bare"], 1.5},
		{"denial from memory ÷ (admission + clock)", ns["memo"] / (ns["one"] + ns["clock"]), 2},
	} {
		t.Logf("%-52s %.2f  (target ≤ %.2f)", row.what, row.value, row.limit)
		if row.value > row.limit*slack {
			t.Errorf("%s: %.2f, more than %.1f times the target %.2f", row.what, row.value, slack, row.limit)
		}
	}
}

// measure returns the median ns per operation of interleaved runs.
func measure(t *testing.T, benches map[string]func(*testing.B)) map[string]float64 {
	const rounds = 5
	all := make(map[string][]float64)
	for range rounds {
		for name, bench := range benches {
			r := testing.Benchmark(bench)
			all[name] = append(all[name], float64(r.T.Nanoseconds())/float64(r.N))
		}
	}
	medians := make(map[string]float64)
	for name, list := range all {
		slices.Sort(list)
		medians[name] = list[rounds/2]
		t.Logf("%-16s %7.1f ns/op", name, medians[name])
	}
	return medians
}

// The hot path may not become twice as slow unnoticed. The guard compares the
// fastest of short, interleaved runs, which what else runs on the machine makes
// slower and nothing makes faster; and it must find a path that does all twice. It
// looks at one key, whose time is instructions: of many keys it is cache misses,
// which differ with what else is in the caches.
func TestHotPathGuard(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector has a speed of its own")
	}
	one, refusing := newRig(t, 1, false), newRig(t, 1, true)
	for _, row := range []struct {
		what       string
		path, base func(i int)
		most       float64 // times the base: one and a half of what was measured on a quiet machine
	}{
		{"Allow", one.call("allow"), one.call("bare"), 3.4},
		{"denial from memory", refusing.call("memo"), one.call("clock"), 5.3},
	} {
		double := func(i int) { row.path(i); row.path(i) }
		ns := fastest(25, 1<<15, row.base, row.path, double)
		once, doubled := ns[1]/ns[0], ns[2]/ns[0]
		t.Logf("%s: %.2f times its base (%.0f ns), twice as slow %.2f, allowed %.2f", row.what, once, ns[0], doubled, row.most)
		if once > row.most {
			t.Errorf("%s: %.2f times its base, allowed %.2f", row.what, once, row.most)
		}
		if doubled < row.most {
			t.Errorf("%s: the guard would not see a path twice as slow: %.2f times the base, allowed %.2f", row.what, doubled, row.most)
		}
	}
}

func (r *rig) call(name string) func(i int) {
	f := benches[name]
	return func(i int) { f(r, i) }
}

// fastest returns the least ns per call of some rounds, in which all take turns.
func fastest(rounds, calls int, fs ...func(i int)) []float64 {
	least := make([]float64, len(fs))
	for range rounds {
		for k, f := range fs {
			start := time.Now()
			for i := range calls {
				f(i)
			}
			ns := float64(time.Since(start).Nanoseconds()) / float64(calls)
			if least[k] == 0 || ns < least[k] {
				least[k] = ns
			}
		}
	}
	return least
}

// What each path of a decision allocates: nothing.
func TestHotPathAllocatesNothing(t *testing.T) {
	granted, refusing := newRig(t, 1, false), newRig(t, 1, true)
	for _, row := range []struct {
		name string
		r    *rig
		path Path
	}{
		{"allow", granted, PathSlice}, {"allowN", granted, PathSlice}, {"allowAll", granted, PathSlice}, {"memo", refusing, PathMemo},
	} {
		mustPath(t, row.r.l, row.r.keys[0], row.path)
		if n := testing.AllocsPerRun(1000, func() { benches[row.name](row.r, 0) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", row.name, n)
		}
	}
	if testing.Short() {
		return // floors are earned after seconds
	}
	floor := newFloorRig(t, 1)
	if n := testing.AllocsPerRun(1000, func() { benches["allow"](floor, 0) }); n != 0 {
		t.Errorf("on the floor: %v allocations, want 0", n)
	}
	mustPath(t, floor.l, floor.keys[0], PathFloor)
}

// watched lets somebody look at a node while a function runs: what a page that is open
// or a scraper asks for, so often.
func (r *rig) watched(every time.Duration, f func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			r.node.Stats()
			if i%10 == 0 {
				r.l.Denied(20)
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	f()
	close(stop)
	<-done
}

// watching returns the least ns per call of a path in interleaved runs of so long,
// alone and while somebody looks on.
func (r *rig) watching(bench string, rounds int, span, every time.Duration) (alone, watched float64) {
	call, i := r.call(bench), 0
	run := func(least *float64) {
		calls, start := 0, time.Now()
		for ; time.Since(start) < span; calls += 1024 {
			for range 1024 {
				call(i)
				i++
			}
		}
		if ns := float64(time.Since(start).Nanoseconds()) / float64(calls); *least == 0 || ns < *least {
			*least = ns
		}
	}
	for range rounds {
		run(&alone)
		r.watched(every, func() { run(&watched) })
	}
	return alone, watched
}

// Who looks on does not slow down what is looked at, for what is told is counted
// anyway, or on request. The guard looks ten times as often as anybody should, so that
// each of its short runs is looked at, and allows for a machine whose cores are all busy;
// -ratios prints what it costs who does not.
func TestWatchingCostsNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector has a speed of its own")
	}
	rounds, span, every, most := 8, 100*time.Millisecond, 10*time.Millisecond, 3.0
	if *ratios {
		rounds, span, every, most = 10, time.Second, 100*time.Millisecond, 1.05
	}
	const keys = 1 << 12 // all in touch with the store
	for _, row := range []struct {
		what, bench string
		r           *rig
	}{
		{"Allow on a slice", "allow", newRig(t, keys, false)}, {"a denial from memory", "memo", newRig(t, keys, true)},
	} {
		alone, watched := row.r.watching(row.bench, rounds, span, every)
		t.Logf("%s takes %.1f ns, %.1f while Stats is called every %v and Denied every %v: %.3f", row.what, alone, watched, every, 10*every, watched/alone)
		if watched > alone*most {
			t.Errorf("%s: %.2f times as slow while somebody looks on, allowed %.2f", row.what, watched/alone, most)
		}
	}
}
