package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// Redis stands still for 5 s under 5,000 requests a second, with all else as it is.
func TestRedisStalls(t *testing.T) {
	f := fault{
		name:   "stopped for long under much load",
		begin:  func(r *run) error { return r.server.Stop() },
		end:    func(r *run) error { return r.server.Continue() },
		lasts:  5 * time.Second,
		load:   func(l *load) { l.rate, l.workers = 5000, 32 },
		expect: expectation{down: always},
	}
	if brief() {
		f.lasts, f.load = 2*time.Second, func(l *load) { l.rate = 2 * l.rate }
	}
	o := runFault(t, f)
	p99, timers := o.percentile(0.99)
	t.Logf("p99 of Allow while Redis stands still %v, of timers beside it %v late", p99, timers)
	if limit := time.Millisecond + 2*timers; p99 > limit {
		t.Errorf("p99 of Allow is %v, want at most %v", p99, limit)
	}
}

// percentile is that of the time of calls while the fault lasted, from when all
// nodes knew of it, and that of the lateness of timers in the same time.
func (o *outcome) percentile(p float64) (calls, timers time.Duration) {
	known := o.began
	for node := range o.nodes {
		for _, out := range o.of(o.outages(node)) {
			known = max(known, out.from)
		}
	}
	var took, lateBy []time.Duration
	for i := range o.answers {
		if a := &o.answers[i]; a.at >= known && a.at < o.ended {
			took = append(took, a.took)
		}
	}
	for _, c := range o.controls {
		if c.at >= known && c.at < o.ended {
			lateBy = append(lateBy, c.by)
		}
	}
	return quantile(took, p), quantile(lateBy, p)
}

func quantile(list []time.Duration, p float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[int(p*float64(len(list)-1))]
}

// After a stall a node settles what the outage left, of its own accord, in no
// more calls than there are ticks.
func TestNoStormAfterAStall(t *testing.T) {
	r := &run{t: t, fault: fault{name: "calls after a stall"}, began: time.Now()}
	r.server = redistest.Start(t, userArgs...)
	r.admin = patient(r.t, r.server.Addr, "", "")
	setup := usualFleet(r.began, r.connect)
	asFleet(func() { r.fleet = setup.start(t) })
	stop := make(chan struct{})
	l := usualLoad()
	var answers func() []answer
	asFleet(func() { answers = l.drive(r.fleet, r.began, stop) })
	time.Sleep(longCalm)
	r.must(r.server.Stop())
	time.Sleep(shortFault)
	close(stop) // nobody asks any more: what is sent now is of the nodes' own accord
	answers()
	before := r.fleet.stats()
	r.must(r.server.Continue())
	back := time.Now()
	r.fleet.awaitUp()
	for range 8 {
		time.Sleep(defaultTick)
		ticks := uint64(time.Since(back)/defaultTick) + 1
		for i, st := range r.fleet.stats() {
			// Each may have had a few calls under way when the server woke.
			const underWay = 8
			if calls := st.Calls - before[i].Calls; calls > ticks+underWay {
				t.Errorf("node %d made %d calls in %d ticks after the stall", i, calls, ticks)
			}
		}
	}
	t.Log(callsSince(before, r.fleet.stats()))
}

func callsSince(before, after []hybrid.Stats) (text string) {
	for i := range before {
		text += fmt.Sprintf("node %d: %d calls, %d operations; ", i, after[i].Calls-before[i].Calls, after[i].Total.Operations-before[i].Total.Operations)
	}
	return text
}
