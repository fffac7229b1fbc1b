package baseline

import (
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/lab/sim"
)

// postPaidFleet counts: a node admits while the usage that it was last told and
// its own since then are below the limit, and tells the store each interval what
// it has admitted. Between two reports nodes do not know of each other, so that
// together they admit too much; the account keeps that as a debt, which is the
// strict form of the scheme: where counts stop at the limit, it is forgotten.
type postPaidFleet struct {
	*store
	nodes []*postPaidNode
}

type postPaidNode struct {
	law   law
	fleet *postPaidFleet
	every time.Duration
	phase time.Duration // of its ticks; servers do not start together

	mu      sync.Mutex
	tallies map[string]*tally
	active  []*tally    // asked for since the last report
	timer   *time.Timer // of the next report, or of the one under way; nil if none is needed
	closed  bool
	reports sync.WaitGroup // under way
}

// tally is what a node knows of one key. All fields are under the node's lock.
type tally struct {
	key    string
	told   usage // of the fleet, as the store last said
	own    usage // admitted here and not reported; it does not drain before it is
	sent   usage // the part of it that is on its way to the store
	active bool
}

// report is what a node tells the store of one key.
type report struct {
	tally *tally
	sent  usage // admitted, up to the time that the report left
	told  usage // the store's answer
}

func newPostPaidFleet(l law, nodes int, rtt func() time.Duration, every time.Duration) *postPaidFleet {
	f := &postPaidFleet{store: newStore(l, rtt)}
	for i := range nodes {
		f.nodes = append(f.nodes, &postPaidNode{law: l, fleet: f, tallies: map[string]*tally{},
			every: every, phase: every * time.Duration(i) / time.Duration(nodes)})
	}
	return f
}

// Ask is part of sim.Subject. No request waits.
func (f *postPaidFleet) Ask(node int, key string, cost int64) sim.Answer {
	now := time.Now().UnixNano()
	return sim.Answer{Allowed: f.nodes[node].take(now, key, cost), At: now}
}

func (n *postPaidNode) take(now int64, key string, cost int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.tally(now, key)
	n.activate(t, now)
	n.renew(t, now)
	u := n.law.drain(t.told, now)
	u.used += t.own.used + t.sent.used
	if !n.law.fits(u, cost) {
		return false
	}
	t.own.used += float64(cost)
	return true
}

// activate makes sure that the next tick reports a key. The node's lock is held.
func (n *postPaidNode) activate(t *tally, now int64) {
	if !t.active {
		t.active = true
		n.active = append(n.active, t)
	}
	if n.timer == nil {
		n.arm(now)
	}
}

// arm sets the timer to the next tick: ticks with nothing to report are not worth
// their time. The node's lock is held.
func (n *postPaidNode) arm(now int64) {
	if n.closed {
		return
	}
	wait := n.every - time.Duration(mod(now-int64(n.phase), int64(n.every)))
	n.reports.Add(1)
	n.timer = time.AfterFunc(wait, func() {
		defer n.reports.Done()
		n.report()
	})
}

func (n *postPaidNode) tally(now int64, key string) *tally {
	t := n.tallies[key]
	if t == nil {
		u := usage{at: now}
		t = &tally{key: key, told: u, own: u, sent: u}
		n.tallies[key] = t
	}
	return t
}

// renew forgets counts of a window that is over.
func (n *postPaidNode) renew(t *tally, now int64) {
	for _, u := range []*usage{&t.own, &t.sent} {
		if n.law.past(u.at, now) {
			*u = usage{at: now}
		}
	}
}

// report settles every key that was asked for since the last report, in one
// pipeline; a key that nobody asked for costs nothing.
func (n *postPaidNode) report() {
	reports := n.collect(time.Now().UnixNano())
	n.fleet.call(len(reports), func(now int64) {
		for i := range reports {
			r := &reports[i]
			r.told = n.fleet.add(now, r.tally.key, r.sent)
		}
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range reports {
		r.tally.told = r.told
		r.tally.sent.used = 0
	}
	n.timer = nil
	if len(n.active) > 0 {
		n.arm(time.Now().UnixNano())
	}
}

// collect moves the counts of the active keys into reports.
func (n *postPaidNode) collect(now int64) []report {
	n.mu.Lock()
	defer n.mu.Unlock()
	reports := make([]report, len(n.active))
	for i, t := range n.active {
		n.renew(t, now)
		t.active = false
		t.sent = usage{used: t.own.used, at: now}
		t.own = usage{at: now}
		reports[i] = report{tally: t, sent: t.sent}
	}
	n.active = n.active[:0]
	return reports
}

// add counts what a node reports, unless its window is over, and returns the
// fleet's usage. The store's lock is held.
func (f *postPaidFleet) add(now int64, key string, sent usage) usage {
	u := f.account(now, key)
	if !f.law.past(sent.at, now) {
		u.used += sent.used
	}
	f.put(key, u)
	return u
}

// Close is part of sim.Subject: it waits for reports under way.
func (f *postPaidFleet) Close() {
	for _, n := range f.nodes {
		n.close()
	}
}

func (n *postPaidNode) close() {
	n.mu.Lock()
	n.closed = true
	if n.timer != nil && n.timer.Stop() {
		n.reports.Done()
	}
	n.mu.Unlock()
	n.reports.Wait()
}
