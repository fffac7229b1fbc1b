package sim

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is how it is known, from what passes on the wire, until when a refund or
// a charge has taken effect.

// owed is a refund or a charge that the store may not have been told of yet.
type owed struct {
	key    string
	tokens int64
	refund bool
	ideal  bool  // what is refunded, a perfect central limiter had admitted too
	made   int64 // ns
	known  bool  // a settle that was made after it was executed
	sent   bool  // a settle carries it, or has been lost with it
	tried  int64 // ns, when a settle that may have carried it was sent; 0: none was
	stale  bool  // it was last tried so long before that its node may have given it up
}

// owes notes a change that is about to be made.
func (w *wire) owes(o *owed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open, w.cargo = map[string][]*owed{}, map[*slice.Settle][]*owed{}
	}
	w.open[o.key] = append(w.open[o.key], o)
}

// load notes what a settle carries that is on its way: all that its node was told
// before. A node has one settle of an account under way at most, so one that is sent
// says that those before it were given up: then charges are told again, and refunds
// are not, for they may have arrived. What no request paid for telling again, until the
// account would have filled, is told no more. The caller holds mu.
func (w *wire) load(st *slice.Settle) {
	open := w.open[keyOf(st.Account)]
	now := time.Now().UnixNano()
	for _, o := range open {
		// One of this very moment may have come too late for it.
		if !o.known && o.made < now && !(o.refund && o.sent) {
			o.stale = o.stale || o.tried > 0 && now-o.tried >= w.fill
			o.sent, o.tried = true, now
			w.cargo[st] = append(w.cargo[st], o)
		}
	}
}

// unload notes what has arrived.
func (w *wire) unload(st *slice.Settle) (arrived []*owed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cargo, loaded := w.cargo[st]
	if !loaded {
		return nil
	}
	delete(w.cargo, st)
	for _, o := range cargo {
		if !o.known {
			o.known = true
			arrived = append(arrived, o)
		}
	}
	key := keyOf(st.Account)
	open := w.open[key][:0]
	for _, o := range w.open[key] {
		if !o.known {
			open = append(open, o)
		}
	}
	w.open[key] = open
	return arrived
}

// bringBack notes that a settle certainly did not run: what it carried goes with the
// next. The caller holds mu.
func (w *wire) bringBack(st *slice.Settle) {
	for _, o := range w.cargo[st] {
		o.sent = false
	}
	delete(w.cargo, st)
}

// changer is what callers do of a fleet besides asking, and tells the judge of it.
type changer interface {
	change(node int, key string, ch change, ideal bool)
	askAll(node int, key string, cost int64) Answer
	flush(node int)
	reset(node int, key string)
}

// changes counts what a fleet was told later.
type changes struct {
	refunds, charges  atomic.Int64 // calls
	refunded, charged atomic.Int64 // tokens
	longest           atomic.Int64 // ns, until Redis knew of one
	judge             *judge
}

// atTheEdge is how far a node may misjudge the store's clock: by half of what a reply
// may take.
const atTheEdge = 600 * time.Millisecond

// change makes a refund or a charge on a node. Just after a window has begun a node may
// take a charge for one of the window before, and forget it: then nobody makes any.
func (f *fleet) change(node int, key string, ch change, ideal bool) {
	m := f.member(node)
	if l := f.e.Limit; l.Windowed() && !ch.refund {
		time.Sleep(max(0, atTheEdge-time.Duration(time.Now().UnixNano()%int64(l.Period()))))
	}
	f.meter.asked.Add(1)
	o := &owed{key: key, tokens: ch.tokens, refund: ch.refund, ideal: ideal, made: time.Now().UnixNano()}
	m.wire.owes(o)
	f.changes.made(o)
	var err error
	if ch.refund {
		err = f.refund(m, key, ch.tokens)
	} else {
		err = f.charge(m, key, ch.tokens)
	}
	if err != nil && !m.gone.Load() {
		f.problem("change", err)
	}
}

// made tells the judge of a change that begins.
func (c *changes) made(o *owed) {
	r := request{at: o.made / 1000 * 1000, number: -1, asked: o.made, cost: o.tokens, key: numberOf(o.key), ideal: o.ideal}
	if o.refund {
		c.refunds.Add(1)
		c.refunded.Add(o.tokens)
		r.event = refunding
	} else {
		c.charges.Add(1)
		c.charged.Add(o.tokens)
		r.event = charging
	}
	c.judge.happened(r)
}

// arrived tells the judge that changes have taken effect.
func (c *changes) arrived(all []*owed) {
	now := time.Now().UnixNano()
	for _, o := range all {
		r := request{at: now, number: math.MaxInt64, asked: o.made, cost: o.tokens, key: numberOf(o.key), ideal: o.ideal, event: charged}
		switch {
		case o.refund:
			r.event = refunded
		case o.stale:
			r.event = forgotten
		}
		for waited := now - o.made; ; {
			old := c.longest.Load()
			if waited <= old || c.longest.CompareAndSwap(old, waited) {
				break
			}
		}
		c.judge.happened(r)
	}
}
