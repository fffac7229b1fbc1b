package chaos

import (
	"errors"
	"slices"
	"time"

	"github.com/hybridlimit/hybrid"
)

// This file is the ways in which a sound run is spoiled, to see that it is told.

// breach breaks a promise, and the beginning of what must be told of it.
type breach struct {
	promise string
	harm    func(*outcome)
}

// last is the last answer of a run.
func last(o *outcome) *answer { return &o.answers[len(o.answers)-1] }

// first finds the first answer after a time of a limiter.
func first(o *outcome, after time.Duration, p hybrid.FailurePolicy) *answer {
	return &o.answers[slices.IndexFunc(o.answers, func(a answer) bool { return a.at > after && a.policy == p })]
}

// during finds an answer by policy.
func during(o *outcome, p hybrid.FailurePolicy) *answer { return first(o, 1500*ms, p) }

// flood admits so many of the hot key at once.
func flood(o *outcome, from time.Duration, path hybrid.Path, n int) {
	for range n {
		o.answers = append(o.answers, answer{at: from, policy: hybrid.FailLocal, kind: hot, key: "hot", allowed: true, path: path})
	}
}

// byPolicy lets the policy answer, as it says.
func (a *answer) byPolicy() {
	a.path, a.allowed, a.retry = hybrid.PathFallback, a.policy != hybrid.FailClosed, ms
}

// stillAt lets the machine stand still until a time.
func stillAt(o *outcome, until, length time.Duration) {
	o.controls = append(o.controls, late{until, length})
}

// away lets a node stop waiting for a while.
func away(o *outcome, node int, from, to time.Duration) {
	o.events = append(o.events, event{node, from, true, errors.New("gone")}, event{node, to, false, nil})
}

var brokenCalls = []breach{
	{"calls are punctual", func(o *outcome) { last(o).took = 27 * ms }},
	{"no call waits while the store is known to be down", func(o *outcome) { during(o, hybrid.FailOpen).took = 7 * ms }},
	{"no error reaches a caller", func(o *outcome) { last(o).err = errors.New("i/o timeout") }},
}

var brokenPolicies = []breach{
	{"the policy decides as it says: at", func(o *outcome) { during(o, hybrid.FailOpen).allowed = false }},
	{"the policy decides as it says: at", func(o *outcome) { during(o, hybrid.FailClosed).allowed = true }},
	{"the policy decides as it says: at", func(o *outcome) { during(o, hybrid.FailLocal).allowed = false }},
	{"the policy decides: at", func(o *outcome) { during(o, hybrid.FailClosed).path = hybrid.PathExact }},
	{"the policy waits for the fault: at", func(o *outcome) { first(o, 500*ms, hybrid.FailOpen).path = hybrid.PathFallback }},
	{"a store that works is asked: 9", func(o *outcome) { o.expect.down = maybe }},
	{"FailLocal admits the fair share", func(o *outcome) {
		for i := range o.answers {
			if a := &o.answers[i]; a.policy == hybrid.FailLocal {
				a.kind, a.allowed = hot, a.at < 1200*ms
			}
		}
	}},
}

var brokenBooks = []breach{
	{"the bound holds: hot, FailLocal, without", func(o *outcome) { flood(o, 500*ms, hybrid.PathExact, 101) }},
	{"the bound holds: hot, FailLocal, with", func(o *outcome) { flood(o, 1500*ms, hybrid.PathFallback, 201) }},
	{"recovery is no second burst", func(o *outcome) { flood(o, 2110*ms, hybrid.PathSlice, 40) }},
	{"goroutines and connections are flat: 1000", func(o *outcome) { o.samples[150].goroutines = 1000 }},
	{"goroutines and connections are flat: 300", func(o *outcome) { o.samples[150].connections = 300 }},
	{"goroutines and connections are flat: 90", func(o *outcome) {
		for i := range o.samples[250:] {
			o.samples[250+i].goroutines = 90
		}
	}},
	{"goroutines and connections are flat: the server", func(o *outcome) { o.clientsAfter = 40 }},
}

var brokenRecoveries = []breach{
	{"nodes see the outage", func(o *outcome) { o.events = o.events[1:] }},
	{"nodes see the outage", func(o *outcome) { o.expect.down = never }},
	{"nodes see the outage", func(o *outcome) {
		o.events = append(o.events, event{0, 1500 * ms, false, nil}, event{0, 1510 * ms, true, errors.New("gone")})
	}},
	{"nodes recover within two ticks: node 0", func(o *outcome) { o.events[2].at = 2400 * ms }},
	{"nodes recover within two ticks: 1", func(o *outcome) { last(o).byPolicy() }},
}

var brokenTales = []breach{
	{"changes of state are told once", func(o *outcome) { o.logs = o.logs[:3] }},
	{"changes of state are told once", func(o *outcome) { o.logs = append(o.logs, o.logs[0]) }},
	{"changes of state are told once", func(o *outcome) { o.stats[1].StoreDowns = 2 }},
	{"changes of state are told once", func(o *outcome) { o.stats[1].StoreDown = true }},
	{"changes of state are told once", func(o *outcome) { o.events[0].err = nil }},
	{"logs keep secrets", func(o *outcome) { o.logs[0].text += secretMark + "-hot" }},
}

// brokenExcuses are those for which the machine is to blame in part.
var brokenExcuses = []breach{
	{"calls are punctual", func(o *outcome) { // a call that is later than twice the timer
		stillAt(o, 2990*ms, 12*ms)
		last(o).took = 50 * ms
	}},
	{"nodes recover within two ticks: node 0", func(o *outcome) { // a long recovery, and a short stall in it
		stillAt(o, 2600*ms, 12*ms)
		o.events[2].at = 2900 * ms
	}},
	{"nodes recover within two ticks: node 0", func(o *outcome) { // a hiccup is no stall
		stillAt(o, 2390*ms, 6*ms)
		o.events[2].at = 2400 * ms
	}},
	{"nodes recover within two ticks: 1 answers by policy", func(o *outcome) { // an outage that outlasts its stall
		stillAt(o, 2490*ms, 12*ms)
		away(o, 0, 2500*ms, 2990*ms)
		first(o, 2940*ms, hybrid.FailLocal).byPolicy()
	}},
	{"the policy waits for the fault: at", func(o *outcome) { // the same before the fault
		stillAt(o, 290*ms, 12*ms)
		away(o, 0, 300*ms, 990*ms)
		first(o, 900*ms, hybrid.FailLocal).byPolicy()
	}},
	{"a store that works is asked: 0.98 %", func(o *outcome) { // and in a fault that is none for the nodes
		o.expect, o.events = expectation{down: never}, nil
		stillAt(o, 1090*ms, 12*ms)
		away(o, 0, 1100*ms, 1900*ms)
		away(o, 1, 1100*ms, 1900*ms)
		for i := range o.answers {
			if a := &o.answers[i]; a.path == hybrid.PathFallback && (a.at < 1100*ms || a.at > 1350*ms && a.at != 1800*ms) {
				a.path = hybrid.PathSlice
			}
		}
	}},
}
