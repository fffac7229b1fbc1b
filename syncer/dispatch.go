package syncer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// dispatch sends settles. What is ready when a call can be made goes with it,
// so batches form by themselves under load and nothing waits without it.
//
// A settle that nobody waits for travels with the next call that has room for
// it, or else with the tick: most calls then carry several accounts.
//
// A settle is prepared at the last moment, so callers that join before that
// share it. Lock order: Account.mu before dispatch.mu.
type dispatch struct {
	s      *Syncer
	lane   *shard
	share  share        // of what a node may do
	backAt atomic.Int64 // ns, when the last outage ended; 0: there was none

	mu    sync.Mutex
	ready []queued
	later []queued      // nobody waits for these
	quota int           // how many calls may go with nothing but these until the next tick
	calls int           // goroutines that call the store
	idle  chan struct{} // closed when calls falls to 0 while somebody waits
	air   []*flight     // calls under way
}

// queued is an account in line. One that was queued for later and is in a hurry
// now stands in line twice; its contact's lazy tells that the later place is void.
type queued struct {
	account *Account
	lazy    bool
}

const (
	mostCalls  = 8  // calls under way at once
	mostBatch  = 64 // accounts in one call
	ownPerTick = 16 // calls per tick that carry nothing but settles of the node's own accord
	// After an outage it is one such call for so long: each key that was asked for
	// has something to tell, on each node, and a store that is just back would be
	// overrun. Callers are served first, and take the debts of their keys along.
	convalescence = int64(time.Minute)
	// leastPatience is how long a settle may at least stay in flight before its
	// outcome counts as unknown. It is longer than callers usually wait, or
	// every hiccup of the store would make all slices in flight unknown.
	leastPatience = time.Second
)

// share is what one of so many parts of the store gets of what a node may do. A part
// must be able to go on beside others that hang, so that calls under way are two for
// each at least.
type share struct {
	calls        int // under way at once
	own          int // calls per tick of the node's own accord
	convalescing int // accounts in such a call after an outage
}

func shareOf(parts int) share {
	return share{calls: max(mostCalls/parts, 2), own: max(ownPerTick/parts, 1), convalescing: max(mostBatch/parts, 1)}
}

// patience is how long a call may take.
func (s *Syncer) patience() time.Duration { return max(leastPatience, s.cfg.StoreTimeout) }

// submit queues an account whose settle was started. It never blocks.
func (d *dispatch) submit(a *Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready = append(d.ready, queued{account: a})
	d.call()
}

// submitLater queues an account whose settle nobody waits for.
func (d *dispatch) submitLater(a *Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.later = append(d.later, queued{account: a, lazy: true})
}

// tick allows so many more calls that nobody waits for, and sends what waits.
func (d *dispatch) tick() {
	d.mu.Lock()
	d.quota = d.share.own
	if d.convalescent() {
		d.quota = 1
	}
	d.mu.Unlock()
	d.nudge()
}

// convalescent reports whether an outage has ended lately.
func (d *dispatch) convalescent() bool {
	back := d.backAt.Load()
	return back != 0 && d.s.Now()-back < convalescence
}

// nudge sends what was left for later, within the quota.
func (d *dispatch) nudge() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range min((len(d.later)+mostBatch-1)/mostBatch, d.quota) {
		d.call()
	}
}

// call adds a goroutine that calls the store. The caller holds mu.
func (d *dispatch) call() {
	if d.calls < d.share.calls {
		d.calls++
		go d.run()
	}
}

// run calls the store until nothing is ready.
func (d *dispatch) run() {
	for {
		batch := d.take()
		if batch == nil {
			return
		}
		if !d.send(batch) {
			return // the call was given up, and its place with it
		}
	}
}

// take returns what goes with the next call: who is waited for first, and others
// as far as there is room. By themselves others go only within the quota.
func (d *dispatch) take() []queued {
	d.mu.Lock()
	defer d.mu.Unlock()
	waited := min(len(d.ready), mostBatch)
	room := mostBatch - waited
	switch {
	case waited > 0:
	case d.quota == 0:
		room = 0
	case d.convalescent():
		room = min(room, d.share.convalescing)
	}
	others := min(len(d.later), room)
	if waited == 0 && others > 0 {
		d.quota--
	}
	if waited+others == 0 {
		d.finish()
		return nil
	}
	batch := append(d.ready[:waited:waited], d.later[:others]...)
	d.ready, d.later = d.ready[waited:], d.later[others:]
	return batch
}

// replace lets another call take the place of one that was given up.
func (d *dispatch) replace() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finish()
	if len(d.ready) > 0 {
		d.call()
	}
}

// finish ends a goroutine that found nothing to send. The caller holds mu.
func (d *dispatch) finish() {
	d.calls--
	if d.calls == 0 && d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}

// quiet returns a channel that is closed once no call is under way.
func (d *dispatch) quiet() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle == nil {
		d.idle = make(chan struct{})
		if d.calls == 0 {
			done := d.idle
			close(done)
			d.idle = nil
			return done
		}
	}
	return d.idle
}

// flight is one call: its accounts, and who ends it: the reply, the timeout, or the
// end of an outage. The result of whoever comes later is void.
type flight struct {
	s        *Syncer
	lane     *shard
	accounts []*Account
	settles  []*slice.Settle // of each account; nil: it had nothing to say
	landed   atomic.Bool
	sentAt   int64
}

// send settles a batch of accounts and applies the replies; it reports whether it was
// not given up before. While this part of the store is down it sends nothing: what was
// queued before the outage would hang in it beyond its end.
func (d *dispatch) send(batch []queued) bool {
	if d.lane.down() {
		d.refuse(batch)
		return true
	}
	f := &flight{s: d.s, lane: d.lane, sentAt: d.s.Now()}
	said := make([]*slice.Settle, 0, len(batch))
	for _, q := range batch {
		st, ok := q.prepare(f.sentAt)
		if !ok {
			continue
		}
		f.accounts, f.settles = append(f.accounts, q.account), append(f.settles, st)
		if st != nil {
			said = append(said, st)
		}
	}
	if len(said) > 0 {
		timer := time.AfterFunc(d.s.patience(), f.abandon) // the context may be looked at too late
		defer timer.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), d.s.patience())
		defer cancel()
		d.takeOff(f)
		defer d.touchDown(f)
		d.s.store.Settle(ctx, said)
	}
	if !f.landed.CompareAndSwap(false, true) {
		return false
	}
	f.land(said)
	return true
}

// refuse ends settles that are not sent. They cost nothing.
func (d *dispatch) refuse(batch []queued) {
	for _, q := range batch {
		st, ok := q.prepare(d.s.Now())
		if !ok {
			continue
		}
		if st != nil {
			st.Outcome, st.Err = slice.NotRun, ErrDown
			d.s.failed(st)
		}
		q.account.Done(st, false)
	}
}

func (d *dispatch) takeOff(f *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.air = append(d.air, f)
}

func (d *dispatch) touchDown(f *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.air = slices.DeleteFunc(d.air, func(o *flight) bool { return o == f })
}

// giveUpOn ends the calls that were sent before a moment. An outage is over when the
// first call is answered; those that are not soon afterwards were lost in it, and
// their keys would wait for them.
func (d *dispatch) giveUpOn(before int64) {
	d.mu.Lock()
	air := slices.Clone(d.air)
	d.mu.Unlock()
	for _, f := range air {
		if f.sentAt < before && f.landed.CompareAndSwap(false, true) {
			f.lose()
		}
	}
}

func (q queued) prepare(now int64) (st *slice.Settle, ok bool) { return q.account.Prepare(q.lazy, now) }

// land applies what the store answered.
func (f *flight) land(said []*slice.Settle) {
	if len(said) > 0 {
		f.over(len(said))
		f.lane.judge(said, f.sentAt)
	}
	for i, a := range f.accounts {
		st := f.settles[i]
		if st != nil && st.Outcome != slice.Ran {
			f.s.failed(st)
		}
		a.Done(st, true)
		if st != nil && st.Lone && f.s.cfg.Poisoned != nil {
			f.s.cfg.Poisoned(a.limiter().name, a.name, st.Err)
		}
	}
}

// over counts the call, of so many settles.
func (f *flight) over(settles int) { f.s.Counts.call(f.s.Now()-f.sentAt, settles) }

// failed tells of a settle that failed, or may have. The caller holds no lock.
func (s *Syncer) failed(st *slice.Settle) {
	if s.cfg.Failed != nil {
		s.cfg.Failed(st.Err)
	}
}

// abandon gives up on a call that takes too long.
func (f *flight) abandon() {
	if f.landed.CompareAndSwap(false, true) {
		f.lane.breaker.failing(f.s.Now(), ErrTimeout)
		f.lose()
	}
}

// lose ends a call without a reply: what it said may have been executed, or may yet.
// The client may hold it for as long as its timeouts say; another call takes its place.
func (f *flight) lose() {
	defer f.lane.dispatch.replace()
	lost := 0
	for i, a := range f.accounts {
		if st := f.settles[i]; st != nil {
			lost++
			void := &slice.Settle{Rule: st.Rule, Usage: st.Usage, Outcome: slice.Unknown, Err: ErrTimeout}
			f.s.failed(void)
			a.Done(void, true)
			continue
		}
		a.Done(nil, true)
	}
	f.over(lost)
}

// judge tells the breaker how a call went. A failure of one account alone, such as
// a key of the wrong type, says nothing about the store.
func (l *shard) judge(said []*slice.Settle, sentAt int64) {
	now := l.dispatch.s.Now()
	var err error
	for _, st := range said {
		if st.Outcome == slice.Ran || st.Lone {
			l.settledAt.Store(now)
			l.answered(sentAt, now)
			return
		}
		err = st.Err
	}
	l.breaker.failing(now, err)
}

// answered takes note of a call that the store has answered.
func (l *shard) answered(sentAt, now int64) {
	s := l.dispatch.s
	s.heardAt.Store(now)
	s.latency.Store((7*s.latency.Load() + now - sentAt) / 8)
	l.breaker.succeeded(now, now-sentAt)
}
