package syncer

import (
	"context"
	"time"
)

// Source says where a verdict comes from.
type Source uint8

// The sources of a verdict.
const (
	FromStore  Source = iota // the store judged this request
	FromSlice                // a slice that arrived while the request waited
	FromMemo                 // a denial that arrived while the request waited
	FromPolicy               // the store did not answer: the failure policy judged
)

// Verdict is the answer to a request that needed the store.
type Verdict struct {
	Allowed bool
	Source  Source
	Retry   time.Duration // > 0 when denied
}

// waiter is one caller that waits for the next settle of an account. A waiter
// of cost 0 waits for the settle alone.
type waiter struct {
	cost int64
	done chan Verdict // of one, so that the settle never waits for a caller
	left bool         // gave up; under Account.mu
	sent bool         // a settle carries its need, and is paid by it; under Account.mu
}

// Ask decides a request that neither the slice nor a memory could: it joins the
// account's next settle and waits for its reply, until a moment (ns) or, if that is
// 0, for StoreTimeout. After that, and at once while the breaker is open, the failure
// policy decides.
//
// A caller whose ctx ends gets its error and disturbs nobody else; if the settle
// was under way its tokens may have been charged.
//
// ok is false if the account was retired: the caller must look the key up again.
func (a *Account) Ask(ctx context.Context, n, until int64) (v Verdict, ok bool, err error) {
	s := a.limiter().s
	if err := ctx.Err(); err != nil {
		return Verdict{}, true, err
	}
	w, v, ok, err := a.join(n, until)
	if w == nil {
		return v, ok, err
	}
	a.limiter().Counts.Blocked.Add(1)
	wait := s.cfg.StoreTimeout
	if until != 0 {
		wait = time.Duration(until - s.Now())
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case v = <-w.done:
		return v, true, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	v, err = a.leave(w, err)
	return v, true, err
}

// join queues a request for the next settle. It returns no waiter if the
// request can be decided now.
func (a *Account) join(n, until int64) (w *waiter, v Verdict, ok bool, err error) {
	s := a.limiter().s
	now := s.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead {
		return nil, v, false, nil
	}
	if a.limiter().closed.Load() {
		return nil, v, true, ErrClosed
	}
	a.touch()
	c := a.inContact(now)
	if v, ok := a.local(n, now); ok {
		return nil, v, true, nil
	}
	late := a.overdue(now)
	if late && c.sentAt >= c.since {
		c.way.breaker.failing(now, ErrTimeout) // as it would be when it had waited
	}
	if late || until != 0 && now >= until || a.down() {
		c.earn(1)
		return nil, a.fall(n, now), true, nil
	}
	w = &waiter{cost: n, done: make(chan Verdict, 1)}
	c.waiting = append(c.waiting, w)
	a.start(intent{})
	return w, v, true, nil
}

// overdue reports whether the callers of the settle under way have waited for as
// long as one may: whoever comes now would wait for nothing, and for longer than
// they did where a part of the store is away. The caller holds mu.
func (a *Account) overdue(now int64) bool {
	c := a.contact()
	return c.inflight && !c.lazy && now-c.since > int64(a.limiter().s.cfg.StoreTimeout)
}

// local decides a request from what may have arrived since the caller looked:
// a slice or a denial. The caller holds mu.
func (a *Account) local(n, now int64) (Verdict, bool) {
	if a.takeLocal(n) {
		return Verdict{Allowed: true, Source: FromSlice}, true
	}
	if retry, ok := a.Denied(n, now); ok {
		return Verdict{Source: FromMemo, Retry: retry}, true
	}
	return Verdict{}, false
}

// takeLocal takes from the slice, and asks for a refill like any other take.
// The caller holds mu.
func (a *Account) takeLocal(n int64) bool {
	left, ok := a.Cell.Take(n, &a.limiter().s.Dead)
	if ok && a.Cell.Crossed(left, n) {
		a.refill(a.limiter().s.Now())
	}
	return ok
}

// leave takes a caller out that stops waiting. The answer may have come in the
// meantime; otherwise a caller that ran out of time is judged by the policy,
// and one that went away gets its context's error.
func (a *Account) leave(w *waiter, err error) (Verdict, error) {
	now := a.limiter().s.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case v := <-w.done:
		return v, nil
	default:
	}
	w.left = true
	if err != nil {
		return Verdict{}, err
	}
	if w.sent {
		a.contact().way.breaker.failing(now, ErrTimeout)
	} else { // nobody has asked the store yet: it is not to blame
		a.inContact(now).earn(1)
	}
	return a.fall(w.cost, now), nil
}

// intent is what a settle is for beyond the needs that wait.
type intent struct {
	kind intentKind
	keep int64 // for giveBack: tokens that stay
}

type intentKind uint8

const (
	serve    intentKind = iota // needs only
	refill                     // report, renew and ask for more
	paced                      // the same for a saturated account: share by demand
	giveBack                   // return all but keep
)

// start queues a settle of the account that somebody waits for. If one is under
// way already, what is wanted now is decided again after it; if one is queued
// for later, it goes now. The caller holds mu.
func (a *Account) start(in intent) {
	c := a.contact()
	switch {
	case c.lazy:
		c.lazy = false
	case c.inflight:
		return
	default:
		c.inflight, c.intent = true, in
	}
	c.since, c.way = a.limiter().s.Now(), a.lane()
	c.way.dispatch.submit(a)
}

// startLater queues a settle that nobody waits for. The caller holds mu, and
// has seen that none is under way.
func (a *Account) startLater(in intent) {
	c := a.contact()
	c.inflight, c.lazy, c.intent = true, true, in
	c.way = a.lane()
	c.way.dispatch.submitLater(a)
}

// Refill asks for more tokens because a take reached the low-water mark. It
// returns at once.
func (a *Account) Refill() {
	now := a.limiter().s.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill(now)
}

// refill is Refill for who holds mu.
func (a *Account) refill(now int64) {
	if a.dead || a.contact() == nil {
		return
	}
	if m := a.contact().memo.Load(); m != nil && now < m.Until {
		return // saturated: the next paced settle asks for all
	}
	if a.floorServes(now) {
		return // it asks when it has served
	}
	if !a.mayStart(refill, now) {
		return
	}
	if a.lastsATick(now) {
		a.startLater(intent{kind: refill})
		return
	}
	a.start(intent{kind: refill})
}

// lastsATick reports whether the slice will hardly run dry before the next tick,
// by the demand as it was and by that since the last settle, which may have
// risen. The caller holds mu, and has counted.
func (a *Account) lastsATick(now int64) bool {
	c := a.contact()
	tick := int64(a.limiter().s.cfg.SyncInterval)
	lately := float64(c.attempts) * float64(tick) / float64(max(now-c.sentAt, 1))
	return float64(a.Cell.Tokens())+0.5 > max(lately, c.demand.over(tick, a.Plan().horizon))
}

// attempt starts a settle of the node's own accord if it may. The caller holds mu.
func (a *Account) attempt(in intent, now int64) bool {
	if !a.mayStart(in.kind, now) {
		return false
	}
	a.startLater(in)
	return true
}

// mayStart reports whether a settle of the node's own accord can be sent, and
// the account's requests have paid for it. Of a slice of unknown standing nothing
// is said. The caller holds mu.
func (a *Account) mayStart(kind intentKind, now int64) bool {
	c := a.contact()
	if c.inflight || c.lease.InDoubt() && kind != serve || a.limiter().closed.Load() || a.down() {
		return false
	}
	a.count(now)
	return c.credit >= 1
}
