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
	last := func(o *outcome) *answer { return &o.answers[len(o.answers)-1] }
	// during finds an answer by policy.
	during := func(o *outcome, p hybrid.FailurePolicy) *answer {
		i := slices.IndexFunc(o.answers, func(a answer) bool { return a.at > 1500*ms && a.policy == p })
		return &o.answers[i]
	}
	flood := func(o *outcome, from time.Duration, path hybrid.Path, n int) {
		for range n {
			o.answers = append(o.answers, answer{at: from, policy: hybrid.FailLocal, kind: hot, key: "hot", allowed: true, path: path})
		}
	}
	for _, c := range []struct {
		promise string
		harm    func(*outcome)
	}{
		{"calls are punctual", func(o *outcome) { last(o).took = 27 * ms }},
		{"no call waits while the store is known to be down", func(o *outcome) { during(o, hybrid.FailOpen).took = 7 * ms }},
		{"no error reaches a caller", func(o *outcome) { last(o).err = errors.New("i/o timeout") }},
		{"the policy decides: at", func(o *outcome) { during(o, hybrid.FailOpen).allowed = false }},
		{"the policy decides: at", func(o *outcome) { during(o, hybrid.FailClosed).allowed = true }},
		{"the policy decides: at", func(o *outcome) { during(o, hybrid.FailLocal).allowed = false }},
		{"the policy decides: at", func(o *outcome) { during(o, hybrid.FailClosed).path = hybrid.PathExact }},
		{"the policy decides: at", func(o *outcome) {
			i := slices.IndexFunc(o.answers, func(a answer) bool { return a.at > 500*ms && a.policy == hybrid.FailOpen })
			o.answers[i].path = hybrid.PathFallback
		}},
		{"the policy decides: 9", func(o *outcome) { o.expect.down = maybe }},
		{"the bound holds: hot, FailLocal, without", func(o *outcome) { flood(o, 500*ms, hybrid.PathExact, 101) }},
		{"the bound holds: hot, FailLocal, with", func(o *outcome) { flood(o, 1500*ms, hybrid.PathFallback, 201) }},
		{"FailLocal admits the fair share", func(o *outcome) {
			for i := range o.answers {
				if a := &o.answers[i]; a.policy == hybrid.FailLocal {
					a.kind, a.allowed = hot, a.at < 1200*ms
				}
			}
		}},
		{"recovery is no second burst", func(o *outcome) { flood(o, 2110*ms, hybrid.PathSlice, 40) }},
		{"goroutines and connections are flat: 1000", func(o *outcome) { o.samples[150].goroutines = 1000 }},
		{"goroutines and connections are flat: 300", func(o *outcome) { o.samples[150].connections = 300 }},
		{"goroutines and connections are flat: 90", func(o *outcome) {
			for i := range o.samples[250:] {
				o.samples[250+i].goroutines = 90
			}
		}},
		{"goroutines and connections are flat: the server", func(o *outcome) { o.clientsAfter = 40 }},
		{"nodes see the outage", func(o *outcome) { o.events = o.events[1:] }},
		{"nodes see the outage", func(o *outcome) { o.expect.down = never }},
		{"nodes see the outage", func(o *outcome) {
			o.events = append(o.events, event{0, 1500 * ms, false, nil}, event{0, 1510 * ms, true, errors.New("gone")})
		}},
		{"nodes recover within two ticks: node 0", func(o *outcome) { o.events[2].at = 2400 * ms }},
		{"nodes recover within two ticks: 1", func(o *outcome) { last(o).path, last(o).retry, last(o).allowed = hybrid.PathFallback, ms, false }},
		{"changes of state are told once", func(o *outcome) { o.logs = o.logs[:3] }},
		{"changes of state are told once", func(o *outcome) { o.logs = append(o.logs, o.logs[0]) }},
		{"changes of state are told once", func(o *outcome) { o.stats[1].StoreDowns = 2 }},
		{"changes of state are told once", func(o *outcome) { o.stats[1].StoreDown = true }},
		{"changes of state are told once", func(o *outcome) { o.events[0].err = nil }},
		{"logs keep secrets", func(o *outcome) { o.logs[0].text += secretMark + "-hot" }},
	} {
		o := sound()
		c.harm(o)
		o.sort()
		bad := o.violations()
		if !slices.ContainsFunc(bad, func(v string) bool { return strings.HasPrefix(v, c.promise) }) {
			t.Errorf("%q was not told, but %q", c.promise, bad)
		}
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
