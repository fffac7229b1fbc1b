package syncer

import (
	"strings"
	"sync/atomic"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

// Limiter is one limiter of the node: its keys, its plan, its fleet.
type Limiter struct {
	// Immutable.
	s       *Syncer
	name    string
	policy  Policy
	planFor func(key string) *Plan // nil: all keys have the limiter's plan
	table   *slice.Table[*Account]
	common  seat          // of all accounts, where keys have no limits of their own
	done    chan struct{} // closed when the limiter is

	// Atomics: read by requests, written by the heartbeat or by the user.
	plan       atomic.Pointer[Plan]
	roster     atomic.Pointer[[]string] // nil: the fleet was never heard of
	floorFrom  atomic.Int64             // ns, floors are earned from then on
	floorUntil atomic.Int64             // ns, the registration is trusted until then
	refusals   atomic.Pointer[refusals] // heartbeats that failed in a row; nil: the last one did not
	forgotten  atomic.Int64             // ns, when a fallback bucket that was not full was last evicted; 0: never
	history    precheck.History
	fresh      precheck.Fresh
	closed     atomic.Bool

	Counts Counts
}

// LimiterConfig describes a limiter.
type LimiterConfig struct {
	Name   string
	Plan   *Plan
	Policy Policy
	// PlanFor returns a key's own plan, or nil for the limiter's. It is called
	// without locks, by each of the requests that race for a new key and at most
	// once per SyncInterval afterwards. Accounts then take 48 bytes more, and a key
	// beyond 64 bytes its length.
	PlanFor func(key string) *Plan
}

// Load returns the account of a key, if there is one. It is the first half of
// a request: the second is Take on the account's Cell.
func (l *Limiter) Load(key string) (*Account, bool) { return l.table.Load(key) }

// Account returns the account of a key, made when needed. user is the key as
// the caller gave it, where key is a digest of it.
func (l *Limiter) Account(key, user string) *Account {
	if a, ok := l.table.Load(key); ok {
		return a
	}
	key = strings.Clone(key) // callers may cut keys from larger strings, or from buffers
	now := l.s.Now()
	var own *Plan
	if l.planFor != nil {
		own = l.planFor(user)
	}
	a, evicted, stored := l.table.LoadOrMake(key, func() *Account { return l.newAccount(key, user, own, now) })
	if !stored {
		a.mu.Lock()
		a.inContact(now).loner = true
		a.mu.Unlock()
	}
	for _, old := range evicted {
		old.giveUp()
	}
	return a
}

func (l *Limiter) newAccount(key, user string, own *Plan, now int64) *Account {
	a := &Account{key: key}
	a.seat.Store(l.seatOf(own, l.kept(key, user), now))
	a.fullAt.Store(now)
	return a
}

// kept is the user's key as a seat keeps it: nothing where nobody asks for it, and one
// string in memory, not two, where it is the account's.
func (l *Limiter) kept(key, user string) string {
	switch {
	case l.planFor == nil:
		return ""
	case user == key:
		return key
	default:
		return strings.Clone(user)
	}
}

// seatOf returns the place of an account whose own limit was asked for just now.
func (l *Limiter) seatOf(own *Plan, user string, now int64) *seat {
	if l.planFor == nil {
		return &l.common
	}
	s := &seat{lim: l, own: own, user: user}
	s.asked.Store(now)
	return s
}

// giveUp returns the slice of an evicted account, if its requests have paid for
// that; otherwise the store forgets it with the lease, and the node at once: a flood
// of keys must not leave more than MaxKeys of them.
func (a *Account) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.contact()
	if c == nil || c.inflight {
		return
	}
	tells := c.lease.Holds() || c.charged != 0 || c.fallback != 0
	if !tells || a.down() || !a.attempt(intent{kind: giveBack}, a.limiter().s.Now()) {
		a.letGo()
	}
}

// Replan asks for the key's own limit again, once per SyncInterval at most, so that
// a change of it counts for the next request that no slice serves: a key that floors
// serve, or that is denied, may not be settled for long. It calls user code, so no
// lock is held meanwhile.
func (a *Account) Replan(now int64) {
	was := a.seat.Load()
	if was.lim.planFor == nil || !was.ask(now) {
		return
	}
	own := was.lim.planFor(was.user)
	a.mu.Lock()
	defer a.mu.Unlock()
	if is := a.seat.Load(); !samePlan(is.own, own) {
		a.seat.Store(is.lim.seatOf(own, is.user, now))
		a.forgetDenial(now)
	}
}

// ask reports whether the key's own limit may be asked for again, by this caller alone.
func (s *seat) ask(now int64) bool {
	last := s.asked.Load()
	return now-last >= int64(s.lim.s.cfg.SyncInterval) && s.asked.CompareAndSwap(last, now)
}

func samePlan(a, b *Plan) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Plan returns the limiter's own plan.
func (l *Limiter) Plan() *Plan { return l.plan.Load() }

// SetPlan replaces the limiter's plan. Slices granted under the old one go back
// and denials under it are forgotten.
func (l *Limiter) SetPlan(p *Plan) {
	l.plan.Store(p)
	now := l.s.Now()
	l.table.Range(func(a *Account) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.seat.Load().own == nil {
			a.forgetDenial(now)
		}
		return true
	})
	l.s.nudge() // the slices go back now
}

// forgetDenial drops what followed from the old limit. The caller holds mu.
func (a *Account) forgetDenial(now int64) {
	if c := a.contact(); c != nil {
		c.saturated, c.promise = false, 0
		a.forget(now)
		if a.Plan().Never && (!c.inflight || c.lazy) { // of what is queued for later nothing has been said yet
			a.stop(now)
		}
		if !a.attempt(intent{kind: giveBack}, now) && (c.inflight || c.lease.Holds()) {
			c.outgrown = true // the settle that is queued, or the next, gives it back
			if !c.inflight {
				a.limiter().s.agenda.sooner(a, now+a.limiter().s.dice.jitter(int64(ProbeInterval)))
			}
		}
	}
}

// Done is closed when the limiter takes no more requests.
func (l *Limiter) Done() <-chan struct{} { return l.done }

// Closed reports whether the limiter takes no more requests.
func (l *Limiter) Closed() bool { return l.closed.Load() }
