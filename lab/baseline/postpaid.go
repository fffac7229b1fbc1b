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
	every time.Duration
	nodes []*postPaidNode
	stop  chan struct{}
	loops sync.WaitGroup
}

type postPaidNode struct {
	law law

	mu      sync.Mutex
	tallies map[string]*tally
	active  []*tally // asked for since the last report
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
	f := &postPaidFleet{store: newStore(l, rtt), every: every, stop: make(chan struct{})}
	for i := range nodes {
		n := &postPaidNode{law: l, tallies: map[string]*tally{}}
		f.nodes = append(f.nodes, n)
		// Servers do not start together: their reports are spread over the interval.
		phase := every * time.Duration(i) / time.Duration(nodes)
		f.loops.Go(func() { f.loop(n, phase) })
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
	if !t.active {
		t.active = true
		n.active = append(n.active, t)
	}
	n.renew(t, now)
	u := n.law.drain(t.told, now)
	u.used += t.own.used + t.sent.used
	if !n.law.fits(u, cost) {
		return false
	}
	t.own.used += float64(cost)
	return true
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

// loop reports each interval until the fleet is closed.
func (f *postPaidFleet) loop(n *postPaidNode, phase time.Duration) {
	select {
	case <-time.After(phase):
	case <-f.stop:
		return
	}
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()
	for {
		f.report(n)
		select {
		case <-ticker.C:
		case <-f.stop:
			return
		}
	}
}

// report settles every key that was asked for since the last report, in one
// pipeline; a key that nobody asked for costs nothing.
func (f *postPaidFleet) report(n *postPaidNode) {
	reports := n.collect(time.Now().UnixNano())
	if len(reports) == 0 {
		return
	}
	f.call(len(reports), func(now int64) {
		for i := range reports {
			r := &reports[i]
			r.told = f.add(now, r.tally.key, r.sent)
		}
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range reports {
		r.tally.told = r.told
		r.tally.sent.used = 0
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
	close(f.stop)
	f.loops.Wait()
}
