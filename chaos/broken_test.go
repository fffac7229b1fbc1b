package chaos

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

const ms = time.Millisecond

// sound is a run of two nodes as it should be: a second of calm, a fault of one
// second, and a recovery.
func sound() *outcome {
	o := &outcome{fault: "made up", seed: 42, limit: hybrid.PerSecond(100), accuracy: hybrid.Strict, nodes: 2,
		timeout: defaultTimeout, tick: defaultTick, expect: expectation{down: always},
		began: 1000 * ms, ended: 2000 * ms, ready: 2010 * ms, stopped: 3000 * ms,
		secrets: []string{secretMark}, serverLog: "# the server's last words"}
	for at := 10 * ms; at < o.stopped; at += 10 * ms {
		for i, p := range policies {
			a := answer{at: at, took: ms, node: i % 2, policy: p, kind: warm, key: "warm", allowed: true, path: hybrid.PathSlice}
			if at > 1050*ms && at < 2100*ms {
				a.path, a.allowed, a.took = hybrid.PathFallback, p != hybrid.FailClosed, 0
				a.retry = time.Second
			}
			o.answers = append(o.answers, a)
		}
		o.controls = append(o.controls, late{at, ms / 2})
		o.samples = append(o.samples, sample{at, 50, 10})
	}
	for node := range o.nodes {
		o.events = append(o.events, event{node, 1050 * ms, true, errors.New("gone")}, event{node, 2100 * ms, false, nil})
		o.logs = append(o.logs, logLine{node, 1051 * ms, `level=WARN msg="hybrid: Redis does not answer"`},
			logLine{node, 2101 * ms, `level=INFO msg="hybrid: Redis answers again"`})
		o.stats = append(o.stats, hybrid.Stats{StoreDowns: 1})
	}
	o.sort()
	return o
}

func TestSoundRunPasses(t *testing.T) {
	if bad := sound().violations(); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
}

// A check that cannot fail proves nothing: each of these runs breaks one promise.
func TestBrokenPromisesAreTold(t *testing.T) {
	for _, b := range slices.Concat(brokenCalls, brokenPolicies, brokenBooks, brokenRecoveries, brokenTales, brokenExcuses) {
		o := sound()
		b.harm(o)
		o.sort()
		bad := o.violations()
		if !slices.ContainsFunc(bad, func(v string) bool { return strings.HasPrefix(v, b.promise) }) {
			t.Errorf("%q was not told, but %q", b.promise, bad)
		}
	}
}

// In a soak what is asked of a store that works is judged for all rounds together:
// no more than one answer of a thousand may be by policy for no reason.
func TestASoakIsNotNeglectful(t *testing.T) {
	o := sound()
	o.expect.down = never
	o.events = nil
	o.sort()
	later := o.whenWell()
	fallbacks, asked := o.unasked(func(a *answer) bool { return o.isEarly(a) || o.isDuring(a) || later(a) })
	var s soak
	s.neglect(o)
	if s.unasked != len(fallbacks) || s.unasked == 0 || s.asked != asked || !s.neglectful() {
		t.Errorf("%d of %d unasked, want %d of %d, which is too much", s.unasked, s.asked, len(fallbacks), asked)
	}
	s.unasked, s.asked = 3, 3000
	if s.neglectful() {
		t.Error("one of a thousand is too much")
	}
}

// What timers missed their time by, calls may miss theirs by; and what a stalled
// machine did is no fault of a node.
func TestBusyMachineIsExcused(t *testing.T) {
	o := sound()
	o.answers[len(o.answers)-1].took = 70 * ms
	o.answers[0].path, o.answers[0].allowed, o.answers[0].retry = hybrid.PathFallback, false, ms // FailLocal of a warm key: still wrong
	o.controls = append(o.controls, late{2990 * ms, 40 * ms})
	o.pings = append(o.pings, late{15 * ms, 30 * ms})
	o.sort()
	bad := o.violations()
	if len(bad) != 1 || !strings.Contains(bad[0], "far below its share") {
		t.Errorf("%q", bad)
	}
}

// A recovery may be late by what the machine stood still, and an outage that began in
// a stall may last until two ticks after it.
func TestStallsAreExcusedByAmount(t *testing.T) {
	o := sound()
	stillAt(o, 2350*ms, 100*ms)
	o.events[2].at = 2560 * ms
	away(o, 1, 300*ms, 500*ms)
	stillAt(o, 290*ms, 12*ms)
	first(o, 480*ms, hybrid.FailOpen).byPolicy()
	o.sort()
	bad := o.broken(func(c check) bool { return !c.always })
	if len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	if still := o.stoodStill(300*ms, 2300*ms); still != 50*ms {
		t.Errorf("the machine stood still for %v, want 50 ms", still)
	}
}

// A call waits for a server and then for its own process: what both were late counts
// together, and while the fault lasts the server itself is not asked.
func TestTimersAndServersAreLateTogether(t *testing.T) {
	for _, c := range []struct {
		timers, other, server time.Duration
		at                    time.Duration
		stalled               bool
	}{
		{6 * ms, 0, 0, 500 * ms, false},
		{11 * ms, 0, 0, 500 * ms, true},
		{6 * ms, 6 * ms, 0, 500 * ms, true},
		{6 * ms, 0, 6 * ms, 500 * ms, true},
		{6 * ms, 0, 6 * ms, 1500 * ms, false},
		{6 * ms, 6 * ms, 0, 1500 * ms, true},
	} {
		o := sound()
		stillAt(o, c.at, c.timers)
		o.others, o.pings = []late{{c.at, c.other}}, []late{{c.at, c.server}}
		o.sort()
		if got := o.stalled(c.at+50*ms, c.at+50*ms); got != c.stalled || o.stalled(c.at+200*ms, c.at+200*ms) {
			t.Errorf("%+v: stalled %v", c, got)
		}
	}
}

// A run on a busy machine is played again if times are all that it breaks.
func TestBusyRunsArePlayedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(*outcome)
		again bool
	}{
		"nothing is broken":     {func(*outcome) {}, false},
		"a call is late":        {func(o *outcome) { during(o, hybrid.FailOpen).took = 200 * ms }, true},
		"an error":              {func(o *outcome) { last(o).err = errors.New("i/o timeout") }, false},
		"the policy is not":     {func(o *outcome) { during(o, hybrid.FailClosed).allowed = true }, false},
		"the bound is broken":   {func(o *outcome) { flood(o, 500*ms, hybrid.PathExact, 120) }, false},
		"a change is not told":  {func(o *outcome) { o.logs = o.logs[:3] }, false},
		"a secret is told":      {func(o *outcome) { o.logs[0].text += secretMark }, false},
		"goroutines are left":   {func(o *outcome) { o.samples[150].goroutines = 1000 }, false},
		"late, and an error":    {func(o *outcome) { during(o, hybrid.FailOpen).took = 200 * ms; last(o).err = errors.New("i/o timeout") }, false},
		"late, and little busy": {func(o *outcome) { during(o, hybrid.FailOpen).took = 200 * ms; o.controls = o.controls[:100] }, false},
	} {
		o := sound()
		for at := 100 * ms; at < o.stopped; at += 200 * ms {
			o.controls = append(o.controls, late{at, 12 * ms})
		}
		c.harm(o)
		o.sort()
		if again := o.provesLittle(); again != c.again {
			t.Errorf("%s: played again %v: %q", name, again, o.violations())
		}
	}
}

// A run on a calm machine is played again for one call that was a little late.
func TestRunsWithAStrayArePlayedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(*outcome)
		again bool
	}{
		"nothing":     {func(*outcome) {}, false},
		"a stray":     {func(o *outcome) { last(o).took = 44 * ms }, true},
		"two":         {func(o *outcome) { last(o).took, o.answers[0].took = 44*ms, 44*ms }, false},
		"late":        {func(o *outcome) { last(o).took = 47 * ms }, false},
		"and early":   {func(o *outcome) { last(o).took = 44 * ms; first(o, 500*ms, hybrid.FailOpen).path = hybrid.PathFallback }, false},
		"while it is": {func(o *outcome) { during(o, hybrid.FailOpen).took = 7 * ms }, false},
		"no error":    {func(o *outcome) { last(o).took, last(o).err = 44*ms, errors.New("i/o timeout") }, false},
	} {
		o := sound()
		c.harm(o)
		o.sort()
		if again := o.provesLittle(); again != c.again {
			t.Errorf("%s: played again %v: %q", name, again, o.violations())
		}
	}
}

// A failing run tells its fault, seed, timeline and the end of the server's log.
func TestReportTellsTheRun(t *testing.T) {
	report := sound().report()
	for _, want := range []string{`fault "made up", seed 42`, "1.000s -- the fault begins", "1.050s -- node 1: down, gone",
		"2.000s -- the fault ends", "2.010s -- the store answers", "2.100s -- node 0: up", "node 0 logs level=WARN", "fallback", "# the server's last words"} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is not in the report", want)
		}
	}
	for line := range strings.Lines(report) {
		if strings.HasPrefix(strings.TrimSpace(line), "1.5s") && strings.Fields(line)[5] != "30" {
			t.Errorf("a tenth of a second in the outage has 30 answers by policy: %s", line)
		}
	}
}

// The same with a real server: a run that is wrongly expected to keep the
// library's own words secret is told.
func TestFailingRunIsTold(t *testing.T) {
	o := play(t, faults[0]) // stopped
	const words = "follow their failure policy"
	o.secrets = append(o.secrets, words)
	if bad := o.violations(); !slices.ContainsFunc(bad, func(v string) bool { return strings.Contains(v, words) }) {
		t.Errorf("not told: %q", bad)
	}
	report := o.report()
	for _, want := range []string{`fault "stopped", seed`, "-- the fault begins", "-- node 3: down", "-- node 3: up", words, "Ready to accept connections"} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is not in\n%s", want, report)
		}
	}
}
