package chaos

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
)

// This file is the promises, one check each. A check looks at what was recorded
// and returns the ways in which it breaks the promise.

// check is one promise.
type check struct {
	name   string
	broken func(*outcome) []string
	always bool // it does not depend on time: it holds whatever the machine does
}

// promises are checked after every run.
var promises = []check{
	{"calls are punctual", lateCalls, false},
	{"no call waits while the store is known to be down", waitingCalls, false},
	{"no error reaches a caller", failedCalls, true},
	{"the policy decides", wrongPolicy, false},
	{"the policy waits for the fault", early, false},
	{"a store that works is asked", neglected, false},
	{"the policy decides as it says", ownWords, true},
	{"FailLocal admits the fair share", meanShares, false},
	{"the bound holds", brokenBounds, true},
	{"recovery is no second burst", secondBursts, false},
	{"goroutines and connections are flat", leaks, true},
	{"nodes see the outage", unseenOutages, false},
	{"nodes recover within two ticks", slowRecoveries, false},
	{"changes of state are told once", untoldChanges, true},
	{"logs keep secrets", toldSecrets, true},
}

// violations returns all broken promises.
func (o *outcome) violations() []string { return o.broken(func(check) bool { return true }) }

// broken returns how some of the promises are broken.
func (o *outcome) broken(judged func(check) bool) (all []string) {
	for _, p := range promises {
		if !judged(p) {
			continue
		}
		list := p.broken(o)
		for i, v := range list {
			if i == 5 {
				all = append(all, fmt.Sprintf("%s: and %d more", p.name, len(list)-i))
				break
			}
			all = append(all, p.name+": "+v)
		}
	}
	return all
}

// holdsAlways is of a promise that holds whatever the machine does.
func holdsAlways(c check) bool { return c.always }

// slack is what a call may take beyond StoreTimeout on an idle machine.
const slack = 5 * time.Millisecond

// overdue says that a call took longer than so long, and than twice the lateness of
// timers at the time excuses, or "".
func (o *outcome) overdue(a *answer, most time.Duration) string {
	if a.took <= most || a.took <= most+o.grace(a.at, a.end()) {
		return ""
	}
	return fmt.Sprintf("%v took %v, at most %v expected; timers were %v late, and twice that is excused", describe(a), a.took, most, o.lateness(a.at, a.end()))
}

// lateCalls: no call takes longer than StoreTimeout and 5 ms, but for as much
// as timers were late in the same time. The few timers beside some ten thousand calls
// do not meet every moment at which other programs have the processors: one call in
// five thousand may be a stray. A run of fewer calls that has one is played again.
func lateCalls(o *outcome) []string {
	bad, strays := o.late()
	if len(strays) > len(o.answers)/5000 {
		bad = append(bad, strays...)
	}
	return bad
}

// late are the calls that took too long; strays did so by less than StoreTimeout.
func (o *outcome) late() (bad, strays []string) {
	for i := range o.answers {
		a := &o.answers[i]
		switch why := o.overdue(a, o.timeout+slack); {
		case why == "":
		case o.overdue(a, 2*o.timeout+slack) == "":
			strays = append(strays, why)
		default:
			bad = append(bad, why)
		}
	}
	return bad, strays
}

// waitingCalls: while its breaker is open a node answers at once.
func waitingCalls(o *outcome) (bad []string) {
	o.duringOutages(func(a *answer) {
		if why := o.overdue(a, slack); why != "" {
			bad = append(bad, why)
		}
	})
	return bad
}

// duringOutages calls visit with each answer to a call that began and ended
// while its node did not wait for the store.
func (o *outcome) duringOutages(visit func(*answer)) {
	for node := range o.nodes {
		for _, out := range o.outages(node) {
			for i := range o.answers {
				if a := &o.answers[i]; a.node == node && a.at > out.from && a.end() < out.to {
					visit(a)
				}
			}
		}
	}
}

func failedCalls(o *outcome) (bad []string) {
	for i := range o.answers {
		if a := &o.answers[i]; a.err != nil {
			bad = append(bad, fmt.Sprintf("%v: %v", describe(a), a.err))
		}
	}
	return bad
}

// ownWords: answers by policy are what the policy says.
func ownWords(o *outcome) (bad []string) {
	for i := range o.answers {
		a := &o.answers[i]
		if a.path != hybrid.PathFallback {
			continue
		}
		if why := o.against(a); why != "" {
			bad = append(bad, fmt.Sprintf("%v: %s", describe(a), why))
		}
	}
	return bad
}

// wrongPolicy: while a node does not wait for the store nothing else but the policy
// and its own memory answers.
func wrongPolicy(o *outcome) (bad []string) {
	o.duringOutages(func(a *answer) {
		if a.path == hybrid.PathExact {
			bad = append(bad, fmt.Sprintf("%v: by the store, which is down", describe(a)))
		}
	})
	return bad
}

// early: before the fault the policy answers nothing.
func early(o *outcome) (bad []string) {
	fallbacks, _ := o.unasked(o.isEarly)
	for _, a := range fallbacks {
		bad = append(bad, fmt.Sprintf("%v: by policy before the fault", describe(a)))
	}
	return bad
}

// neglected: a store that works is asked, also while a fault lasts that nodes need
// not stop waiting for. As in lateCalls, one call of a run may be a stray, which
// waited its whole time while no timer and no ping was late.
func neglected(o *outcome) (bad []string) {
	if o.expect.down == always {
		return nil
	}
	fallbacks, asked := o.unasked(o.isDuring)
	if len(fallbacks) == 1 && fallbacks[0].took >= o.timeout {
		return nil
	}
	if part := float64(len(fallbacks)) / float64(max(asked, 1)); part > o.expect.byPolicy {
		bad = append(bad, fmt.Sprintf("%.2f %% of the answers by policy, at most %.2f %% expected; the first: %v", 100*part, 100*o.expect.byPolicy, describe(fallbacks[0])))
	}
	return bad
}

// due is when every node must rely on the store again.
func (o *outcome) due() time.Duration {
	due := o.ready + twoTicks(o) + o.redial
	return due + o.grace(o.ready, due)
}

// whenWell is of answers when all is well again, with the calls from before answered.
func (o *outcome) whenWell() func(*answer) bool {
	settled := max(o.due(), o.recovered()) + o.timeout
	return func(a *answer) bool { return a.at > settled }
}

// isEarly is of answers before the fault, isDuring of those that it may have met.
func (o *outcome) isEarly(a *answer) bool  { return a.at > warmUp && a.end() < o.began }
func (o *outcome) isDuring(a *answer) bool { return a.end() >= o.began && a.at <= o.ready }

// unasked returns which of some answers are by policy though no stall excuses them,
// and how many there are in all.
func (o *outcome) unasked(of func(*answer) bool) (fallbacks []*answer, asked int) {
	for i := range o.answers {
		a := &o.answers[i]
		if !of(a) {
			continue
		}
		asked++
		if a.path == hybrid.PathFallback && !o.excused(a) {
			fallbacks = append(fallbacks, a)
		}
	}
	return fallbacks, asked
}

// warmUp is when first connections have been made.
const warmUp = 200 * time.Millisecond

// against says what is wrong with an answer by policy, or "".
func (o *outcome) against(a *answer) string {
	switch {
	case a.policy == hybrid.FailOpen && !a.allowed:
		return "FailOpen denied"
	case a.policy == hybrid.FailClosed && a.allowed:
		return "FailClosed admitted"
	case !a.allowed && a.retry <= 0:
		return "denied without RetryAfter"
	case a.policy == hybrid.FailLocal && a.kind != hot && !a.allowed && o.limit.Burst() >= int64(5*o.nodes):
		return "FailLocal denied a key that is far below its share"
	}
	return ""
}

// unseenOutages: a store that does not answer is noticed by every node, and once;
// one that does is left alone.
func unseenOutages(o *outcome) (bad []string) {
	for node := range o.nodes {
		list := o.outages(node)
		if o.expect.down == always && !slices.ContainsFunc(list, func(out outage) bool { return out.from <= o.ended && out.to >= o.ended }) {
			bad = append(bad, fmt.Sprintf("node %d relied on the store when the fault ended", node))
		}
		for _, out := range list {
			during := out.from >= o.began && out.from <= o.ready
			switch {
			case o.expect.down == always && out.ended && out.to > o.began+o.tick && out.to < o.ended:
				bad = append(bad, fmt.Sprintf("node %d relied on the store again at %v, while the fault lasted", node, out.to))
			case o.expect.down == never || !during:
				if !o.stalled(out.from, out.from) {
					bad = append(bad, fmt.Sprintf("node %d stopped waiting at %v for no reason", node, out.from))
				}
			}
		}
	}
	return bad
}

// of the outages these touch the fault.
func (o *outcome) of(list []outage) (touching []outage) {
	for _, out := range list {
		if out.to >= o.began && out.from <= o.ready {
			touching = append(touching, out)
		}
	}
	return touching
}

// slowRecoveries: two ticks after the store can answer, every node relies on it
// and no answer is by policy any more.
func slowRecoveries(o *outcome) (bad []string) {
	if o.absent {
		return nil
	}
	due := o.due()
	for node := range o.nodes {
		for _, out := range o.of(o.outages(node)) {
			if !o.recoveredInTime(out, due) {
				bad = append(bad, fmt.Sprintf("node %d recovered %v after the store (ended: %v), want %v; the machine stood still for %v of it",
					node, out.to-o.ready, out.ended, due-o.ready, o.stoodStill(o.ready, out.to)))
			}
		}
	}
	if late, _ := o.unasked(o.whenWell()); len(late) > o.lone {
		bad = append(bad, fmt.Sprintf("%d answers by policy when all was well again, the first: %s", len(late), describe(late[0])))
	}
	return bad
}

// twoTicks is the time of two ticks, which are jittered by a fifth, and of the
// probe itself.
func twoTicks(o *outcome) time.Duration { return o.tick*12/5 + o.timeout }

// untoldChanges: each outage is told once to the log, to the hooks and in the
// statistics, and so is its end.
func untoldChanges(o *outcome) (bad []string) {
	for node := range o.nodes {
		list := o.outages(node)
		downs, ups, warned, informed := 0, 0, 0, 0
		for _, e := range o.events {
			switch {
			case e.node != node:
			case e.down:
				downs++
				if e.err == nil {
					bad = append(bad, fmt.Sprintf("node %d: an outage without a cause", node))
				}
			default:
				ups++
			}
		}
		for _, l := range o.logs {
			switch {
			case l.node != node:
			case l.is(slog.LevelWarn) && strings.Contains(l.text, "does not answer"):
				warned++
			case l.is(slog.LevelInfo) && strings.Contains(l.text, "answers again"):
				informed++
			}
		}
		st := o.stats[node]
		if o.absent {
			ups, informed, st.StoreDown = ups+1, informed+1, !st.StoreDown // the outage does not end
		}
		if downs != ups || downs != len(list) || st.StoreDown || st.StoreDowns != uint64(downs) {
			bad = append(bad, fmt.Sprintf("node %d: hooks heard %d outages and %d ends, statistics say %d, still down: %v", node, downs, ups, st.StoreDowns, st.StoreDown))
		}
		if logged := min(downs, 3); warned < logged || warned > downs || informed != warned { // then one in ten seconds
			bad = append(bad, fmt.Sprintf("node %d: %d outages, %d logged, %d ends logged", node, downs, warned, informed))
		}
	}
	return bad
}

// toldSecrets: no key, address or password is in a log line.
func toldSecrets(o *outcome) (bad []string) {
	for _, l := range o.logs {
		for _, s := range o.secrets {
			if strings.Contains(l.text, s) {
				bad = append(bad, fmt.Sprintf("node %d logged %q, in which there is %q", l.node, l.text, s))
			}
		}
	}
	return bad
}

func describe(a *answer) string {
	verdict := "denied"
	if a.allowed {
		verdict = "admitted"
	}
	return fmt.Sprintf("at %v node %d, %v, %v key: %s by %v", a.at.Round(time.Millisecond/10), a.node, a.policy, a.kind, verdict, a.path)
}
