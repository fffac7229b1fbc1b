package chaos

import (
	"cmp"
	"slices"
	"time"

	"github.com/hybridlimit/hybrid"
)

// outcome is all that was recorded of a run. Times are since the run began.
type outcome struct {
	fault    string
	seed     uint64
	limit    hybrid.Limit
	accuracy hybrid.Accuracy
	nodes    int
	timeout  time.Duration // StoreTimeout
	tick     time.Duration // SyncInterval
	expect   expectation
	lone     int           // timeouts that are no outage: one request in a thousand, in a run of many rounds
	redial   time.Duration // by how much later a client may find that it can connect again
	lanes    int           // into which nodes divide the store, where it has parts
	absent   bool          // there never was a store: no calm, and no recovery
	idle     peak          // what was needed before the nodes started, and those who ask, if there was no calm

	began, ended time.Duration // of the fault
	ready        time.Duration // when the store answered again to who asked anew
	stopped      time.Duration // of the load

	answers  []answer // in order of time
	controls []late   // in order of time
	pings    []late   // of the server, in order of time; by a way of their own
	well     bool     // the server is well all the time: what is harmed is the way of the nodes to it
	others   []late   // of a server that no fault befalls, in order of time
	events   []event
	samples  []sample
	logs     []logLine
	stats    []hybrid.Stats // of each node, at the end
	servers  []late         // pings for which the fault is not to blame, in order of time
	stalls   []stall        // of the machine, in order of time

	clientsBefore, clientsAfter int // connections, as the server counts them; 0: nobody asked it
	connsAfter                  int // the same, as the clients count them

	secrets   []string // must not be in any log line
	serverLog string   // its end
}

// downs is whether nodes must stop waiting for the store.
type downs uint8

const (
	never downs = iota
	always
	maybe // it depends on who asks when
)

// expectation is what a fault does to a fleet at most.
type expectation struct {
	down       downs
	undialable bool    // no connection can be made meanwhile
	losses     int     // how often the store loses what it had acknowledged
	byPolicy   float64 // the part of the answers, while the fault lasts, that may be by policy, where nodes need not stop waiting
}

// sort orders what was recorded, and finds what the machine excuses.
func (o *outcome) sort() {
	slices.SortStableFunc(o.answers, func(a, b answer) int { return cmp.Compare(a.at, b.at) })
	slices.SortStableFunc(o.controls, func(a, b late) int { return cmp.Compare(a.at, b.at) })
	slices.SortStableFunc(o.pings, func(a, b late) int { return cmp.Compare(a.at, b.at) })
	slices.SortStableFunc(o.others, func(a, b late) int { return cmp.Compare(a.at, b.at) })
	slices.SortStableFunc(o.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	slices.SortStableFunc(o.logs, func(a, b logLine) int { return cmp.Compare(a.at, b.at) })
	o.servers = o.findServers()
	o.stalls = o.findStalls()
}

// worstControl returns by how much a timer was late at worst between two times.
func (o *outcome) worstControl(from, to time.Duration) time.Duration {
	return worst(o.controls, from, to)
}

// worst is the longest lateness of a list between two times. One that began before
// their end may have ended after others that began later.
func worst(list []late, from, to time.Duration) (by time.Duration) {
	const longest = 250 * time.Millisecond
	i, _ := slices.BinarySearchFunc(list, from, func(l late, at time.Duration) int { return cmp.Compare(l.at, at) })
	for ; i < len(list) && list[i].at <= to+longest; i++ {
		if list[i].at-list[i].by <= to {
			by = max(by, list[i].by)
		}
	}
	return by
}

// lateness is by how much a timer was late at worst around a time.
func (o *outcome) lateness(from, to time.Duration) time.Duration {
	const around = 250 * time.Millisecond
	return o.worstControl(from-around, to+around)
}

// grace is by how much a moment may be missed: twice the lateness of timers around
// it. A timer has to be scheduled once. A call has to be twice in a row: when its
// own timer or its answer wakes it, and when the account's lock, or the goroutine
// that holds it, does. A call that needs a server is late for it as well: by as much as
// one that no fault befalls was at the time.
func (o *outcome) grace(from, to time.Duration) time.Duration {
	return max(2*o.lateness(from, to), worst(o.servers, from-aftermath, to))
}

// outage is a time in which a node did not wait for the store.
type outage struct {
	node     int
	from, to time.Duration // to is the end of the run if it did not end
	ended    bool
	hold     time.Duration // that the breaker stays open at least
}

// longestHold is for how long a breaker stays open at most without asking the store;
// one that opens again in that time after it closed, opens for twice as long as the
// last time, and for four StoreTimeouts at least.
const longestHold = time.Second

// outages pairs what a node told its hooks.
func (o *outcome) outages(node int) (list []outage) {
	for _, e := range o.events {
		if e.node != node {
			continue
		}
		if e.down {
			out := outage{node: node, from: e.at, to: o.stopped}
			if n := len(list); n > 0 && list[n-1].ended && out.from-list[n-1].to < longestHold {
				out.hold = min(max(2*list[n-1].hold, 4*o.timeout), longestHold)
			}
			list = append(list, out)
		} else if n := len(list); n > 0 {
			list[n-1].to, list[n-1].ended = e.at, true
		}
	}
	return list
}

// recovered is when the last node relied on the store again; the moment at
// which the store was ready if none had stopped.
func (o *outcome) recovered() time.Duration {
	at := o.ready
	for node := range o.nodes {
		for _, out := range o.of(o.outages(node)) {
			at = max(at, out.to)
		}
	}
	return at
}
