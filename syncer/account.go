package syncer

import (
	"sync"
	"sync/atomic"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

// Account is one key of one limiter on this node: the shell around the key's state. A
// service has a million of them and most are cold, so the state, which only a key in
// touch with the store needs, is made at its first settle.
//
// The order of the fields matters. An Account is 96 bytes, an allocation of just that
// size begins at a multiple of 32, and so what a request on the slice reads, the
// first 32, is in one line of the cache.
type Account struct {
	// Read by every request, written by the holder of mu (Take aside).
	Cell  slice.Cell
	Known key.Known

	binding atomic.Pointer[binding] // never nil; written under mu
	active  atomic.Pointer[active]  // nil: not in touch with the store. Written under mu
	name    string                  // the key; immutable
	mu      sync.Mutex              // never held across I/O or user code
	floor   precheck.Floor          // under mu
}

// binding is the limiter and the limit of an account. Where keys have no limits of their
// own they share their limiter's; else each has one, for a limit that may change
// while the key is in use. Immutable but for asked.
type binding struct {
	limiter *Limiter
	own     *Plan        // a limit of the key's own; nil: the limiter's
	user    string       // the key as the caller gave it, of which the account's may be a digest
	asked   atomic.Int64 // ns, when the key's own limit was last asked for
}

// active is the state of a key in touch with the store.
type active struct {
	deny    atomic.Pointer[precheck.Memo] // the state's deny cache, for requests to read without the lock
	applied atomic.Uint32                 // replies taken over, so that a request sees whether it missed one

	// Under Account.mu.
	state key.State
	shard *shard // that the settle under way goes to
	due   int64  // ns, when the timer queue looks at the account; 0: never

	slot int // place in the timer queue, -1: none; under its lock
}

func (a *Account) limiter() *Limiter { return a.binding.Load().limiter }

// Plan returns the plan in force.
func (a *Account) Plan() *Plan {
	b := a.binding.Load()
	if b.own != nil {
		return b.own
	}
	return b.limiter.plan.Load()
}

// lock locks the account, and for one without a place in the table what all such
// accounts of the limiter share.
func (a *Account) lock() {
	a.mu.Lock()
	if a.Known.Untracked {
		a.limiter().shared.mu.Lock()
	}
}

func (a *Account) unlock() {
	if a.Known.Untracked {
		a.limiter().shared.mu.Unlock()
	}
	a.mu.Unlock()
}

// groundLocked is what the floor of a cold key needs.
func (a *Account) groundLocked(now int64, l *Limiter, shard *shard) key.Ground {
	return key.Ground{Now: now, Plan: a.Plan(), Known: &a.Known, Floor: &a.floor, Fleet: &l.fleet, Clock: shard.clock.Load()}
}

// stepLocked begins a step of the key's state.
func (a *Account) stepLocked(now int64) key.Step {
	l := a.limiter()
	s, shard := l.s, l.s.shardOf(l.name, a.name)
	t := key.Step{Env: key.Env{
		Ground: a.groundLocked(now, l, shard),
		Cell:   &a.Cell, Dead: &s.Dead, Key: a.name, Policy: l.policy,
		Forgotten: l.shared.forgotten.Load(), Chance: s.random.float(),
		Timing: key.Timing{
			Latency: s.link.batcher.Latency(), SyncInterval: int64(s.cfg.SyncInterval),
			Timeout: int64(l.timeout), Downtime: s.timers.downtime(),
		},
		Down: shard.Down(), Closed: l.end.closed.Load(), Retired: a.Known.Retired,
	}}
	if a.Known.Untracked {
		t.Shared = &l.shared.bucket
	}
	return t
}

// stateLocked returns the key's state, made when needed.
func (a *Account) stateLocked(t *key.Step) *active {
	c := a.active.Load()
	if c == nil {
		c = &active{slot: -1}
		c.state.Begin(t)
		a.active.Store(c)
		if a.Known.Untracked {
			a.limiter().outside.add(a)
		}
	}
	return c
}

// finishLocked does what a step has left to do.
func (a *Account) finishLocked(t *key.Step) {
	l, c := a.limiter(), a.active.Load()
	l.Counts.add(&t.Tally)
	if t.Lost {
		l.end.lost.Store(true)
	}
	if c == nil {
		return
	}
	if deny := c.state.Deny(); c.deny.Load() != deny {
		c.deny.Store(deny)
	}
	if t.TimedOut {
		c.shard.TimedOut(t.Now)
	}
	if t.Scarce > 0 {
		l.s.reclaim.request(a, t.Scarce, t.Paid)
	}
	if t.Left.Cost > 0 {
		(&Turn{a: a, turn: t.Left}).GiveUp(nil)
	}
	a.submitLocked(c, t.Send)
	l.s.timers.plan(a, t.Timer, t.Due)
	if t.Idle {
		a.active.Store(nil)
		if a.Known.Untracked || a.Known.Retired {
			l.outside.remove(a)
		}
	}
}

// submitLocked hands the key's settle to the batcher.
func (a *Account) submitLocked(c *active, send key.Send) {
	if send == key.SendNothing {
		return
	}
	c.shard = a.limiter().s.shardOf(a.limiter().name, a.name)
	if send == key.SendNow {
		c.shard.Submit(a)
		return
	}
	c.shard.SubmitLater(a)
}

// update runs a step of a key in touch with the store; false if it is not.
func (a *Account) update(do func(s *key.State, t *key.Step)) bool {
	now := a.limiter().s.Now()
	a.lock()
	defer a.unlock()
	c := a.active.Load()
	if c == nil {
		return false
	}
	t := a.stepLocked(now)
	do(&c.state, &t)
	a.finishLocked(&t)
	return true
}

// Refresh asks for the key's own limit before a call begins, for the batcher: what user
// code takes is not the store's delay.
func (a *Account) Refresh(now int64) { a.RefreshPlan(now) }

// Prepare makes the settle of an account whose turn has come, for the batcher. ok is
// false if it was queued in the background and has been sent since.
func (a *Account) Prepare(background bool, now int64) (st *slice.Settle, ok bool) {
	a.lock()
	defer a.unlock()
	c := a.active.Load()
	if background && (c == nil || !c.state.InBackground()) {
		return nil, false
	}
	t := a.stepLocked(now)
	if st = c.state.Compose(&t); st != nil {
		st.Account = a.limiter().s.store.Account(a.limiter().name, a.name)
	}
	a.finishLocked(&t)
	return st, true
}

// Done ends the settle: st has its outcome, nil if nothing was sent.
func (a *Account) Done(st *slice.Settle, sent bool) {
	l := a.limiter()
	if st != nil && st.Lone && l.s.cfg.Poisoned != nil {
		defer l.s.cfg.Poisoned(l.name, a.name, st.Err)
	}
	a.lock()
	defer a.unlock()
	c, now := a.active.Load(), l.s.Now()
	if st != nil && !sent {
		c.state.NotSent()
	}
	l.Counts.settled(st)
	if st != nil && st.Outcome == slice.Ran {
		l.s.hear(c.shard, &st.Grant, c.state.SentAt(), now)
	}
	if tick := c.state.Expiry(st); tick != 0 {
		l.s.expiry.add(tick) // before a request can take from the slice
	}
	t := a.stepLocked(now)
	c.state.Apply(&t, st)
	a.finishLocked(&t)
	c.applied.Add(1) // last: who has seen it sees the denials that the reply left, too
}
