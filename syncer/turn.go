package syncer

import (
	"context"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// This file is the turns of callers that wait: tokens that the store lends ahead, one of
// its operations to begin with and one to say what became of them.

// Turn is the place in the store of a caller that waits. Its owner ends it: with Go, or
// with GiveUp.
type Turn struct {
	a    *Account
	turn key.Turn
}

// Reserve asks the store for the turn of a request of n tokens that was denied and may
// wait. A request that the answer allows without a turn goes at once; a turn is nil
// otherwise. ok is false if the account was retired.
func (a *Account) Reserve(ctx context.Context, n int64) (answer Answer, turn *Turn, ok bool, err error) {
	l := a.limiter()
	w, ok, err := a.reserve(n)
	if w == nil {
		return answer, nil, ok, err
	}
	l.Counts.Blocked.Add(1)
	answer, err = a.await(ctx, w, 0)
	if err == nil && answer.Allowed && answer.Path == key.PathExact && w.Turn.Cost > 0 {
		turn = &Turn{a: a, turn: w.Turn}
	}
	return answer, turn, true, err
}

func (a *Account) reserve(n int64) (w *key.Waiter, ok bool, err error) {
	now := a.limiter().s.Now()
	a.lock()
	defer a.unlock()
	switch {
	case a.Known.Retired:
		return nil, false, nil
	case a.limiter().end.closed.Load():
		return nil, true, ErrClosed
	}
	t := a.stepLocked(now)
	if t.Down {
		return nil, true, ErrDown
	}
	w = a.stateLocked(&t).state.Reserve(&t, n)
	a.Known.Touch()
	a.finishLocked(&t)
	return w, true, nil
}

// Left returns how long it is until the turn may be used, and until its owner must do
// something about it: use it, or renew its lease where that ends before.
func (t *Turn) Left() (goes, due time.Duration) {
	now := t.a.limiter().s.Now()
	goes = time.Duration(t.turn.Goes - now)
	if t.turn.Goes < t.turn.Ends {
		return goes, goes
	}
	return goes, time.Duration(t.turn.Ends-now) - renewAhead
}

// Usable reports whether the turn may be used: it has come, and its lease is not over.
func (t *Turn) Usable() bool {
	now := t.a.limiter().s.Now()
	return now >= t.turn.Goes && now < t.turn.Ends
}

// renewAhead is how long before the end of its lease a turn is renewed.
const renewAhead = 5 * time.Second

// Renew lends the turn's tokens for another two epochs, which is an operation; false if the
// turn is lost. Without an answer nobody can say which lease its tokens belong to, so nothing
// is said of them any more. What was given back meanwhile brings the turn forward.
func (t *Turn) Renew(ctx context.Context) bool {
	if t.turn.Cost > slice.MaxSlice {
		return false
	}
	l, sentAt := t.a.limiter(), t.a.limiter().s.Now()
	st := &slice.Settle{Rule: t.a.Plan().Rule, Usage: slice.Usage{Tag: t.turn.Tag, Held: t.turn.Cost}}
	g, err := l.consult(ctx, t.a.name, st)
	if err != nil || g.Dropped {
		t.turn.Cost = 0
		return false
	}
	next := key.TurnOf(t.turn.Cost, st, l.s.Now(), sentAt)
	next.Goes = min(next.Goes, t.turn.Goes)
	t.turn = next
	return true
}

// Go ends a turn that was used. done is called when the next in line may ask: the store
// serves whoever asks first, so a node that has just had a turn leaves those a moment that it
// kept waiting.
func (t *Turn) Go(done func()) {
	t.a.limiter().Counts.ExactAllowed.Add(1)
	pause := 4 * t.a.limiter().s.link.batcher.Latency()
	if rate := t.a.Plan().Rule.Rate; rate > 0 {
		pause = min(pause, int64(float64(t.turn.Cost)/rate*1000/8))
	}
	t.end(slice.Usage{Tag: t.turn.Tag, Spent: t.turn.Cost}, func() { time.AfterFunc(time.Duration(pause), done) })
}

// GiveUp ends a turn that was not used. done is called when the store has been told.
func (t *Turn) GiveUp(done func()) {
	t.end(slice.Usage{Tag: t.turn.Tag, Returned: t.turn.Cost}, done)
}

func (t *Turn) end(u slice.Usage, done func()) {
	l := t.a.limiter()
	if t.turn.Cost == 0 {
		done() // it was lost
		return
	}
	l.s.shardOf(l.name, t.a.name).Submit(&turnEnd{a: t.a, usage: u, done: done})
}

// turnEnd is the job that tells the store what became of a turn. What it is not told is
// charged, and lent until the lease ends: that only denies.
type turnEnd struct {
	a     *Account
	usage slice.Usage
	done  func()
}

func (e *turnEnd) Refresh(int64) {}

func (e *turnEnd) Prepare(bool, int64) (st *slice.Settle, ok bool) {
	plan, l := e.a.Plan(), e.a.limiter()
	if !plan.Stored() {
		return nil, true // the store cannot settle by such a limit
	}
	return &slice.Settle{Account: l.s.store.Account(l.name, e.a.name), Rule: plan.Rule, Usage: e.usage}, true
}

func (e *turnEnd) Done(st *slice.Settle, sent bool) {
	l := e.a.limiter()
	if st != nil {
		l.Counts.settled(&slice.Settle{Outcome: st.Outcome}) // its tokens were in no slice
	}
	if e.usage.Returned > 0 && (st == nil || st.Outcome != slice.Ran) {
		l.end.lost.Store(true)
	}
	if e.done != nil {
		e.done()
	}
}
