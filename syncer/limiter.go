package syncer

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid/internal/fleet"
	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

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
	Changed func()        // a key's own plan is another one; nil: not of interest
	Timeout time.Duration // that one request waits for the store at most; 0: Config.StoreTimeout
}

// Limiter is one limiter of the node: its keys, its plan, its fleet.
type Limiter struct {
	// Immutable.
	s       *Syncer
	name    string
	policy  Policy
	timeout time.Duration
	planFor func(key string) *Plan // nil: all keys have the limiter's plan
	changed func()
	table   *slice.Table[*Account]
	common  binding // of all accounts, where keys have no limits of their own

	// Read by requests, written by the user.
	plan atomic.Pointer[Plan]

	fleet   fleet.Fleet
	outside outside // accounts without a place in the table that have something to tell
	shared  shared

	end ending

	Counts Counts
}

func (s *Syncer) newLimiter(cfg LimiterConfig) *Limiter {
	l := &Limiter{s: s, name: cfg.Name, policy: cfg.Policy, timeout: cfg.Timeout, planFor: cfg.PlanFor, changed: cfg.Changed, table: slice.NewTable(s.ring)}
	if l.timeout == 0 {
		l.timeout = s.cfg.StoreTimeout
	}
	l.end.done = make(chan struct{})
	l.common.limiter = l
	l.plan.Store(cfg.Plan)
	l.fleet.Init(cfg.Name, s.cfg.Member, s.cfg.Servers, s.Now())
	return l
}

// ending is how far a limiter is on its way to its end.
type ending struct {
	closed atomic.Bool
	done   chan struct{} // closed when it takes no more requests
	lost   atomic.Bool   // something was owed that the store was never told of
}

// shared is what the keys without a place in the table have together.
type shared struct {
	mu        sync.Mutex   // after Account.mu
	bucket    key.Fallback // their share of the limit while the store is silent
	forgotten atomic.Int64 // ns, when a fallback bucket that was not full was last evicted; 0: never
}

// outside is a set of accounts.
type outside struct {
	mu  sync.Mutex // after Account.mu
	set map[*Account]struct{}
}

func (o *outside) add(a *Account) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.set == nil {
		o.set = make(map[*Account]struct{})
	}
	o.set[a] = struct{}{}
}

func (o *outside) remove(a *Account) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.set, a)
}

// each calls do for the accounts that are in the set now.
func (o *outside) each(do func(a *Account)) {
	o.mu.Lock()
	list := slices.Collect(maps.Keys(o.set))
	o.mu.Unlock()
	for _, a := range list {
		do(a)
	}
}

// each calls do for all accounts of the limiter.
func (l *Limiter) each(do func(a *Account)) {
	l.table.Range(func(a *Account) bool { do(a); return true })
	l.outside.each(do)
}

// Done is closed when the limiter takes no more requests.
func (l *Limiter) Done() <-chan struct{} { return l.end.done }

// Closed reports whether the limiter takes no more requests.
func (l *Limiter) Closed() bool { return l.end.closed.Load() }

// Name returns the limiter's name.
func (l *Limiter) Name() string { return l.name }

// Keys returns how many keys the limiter remembers.
func (l *Limiter) Keys() int { return l.table.Len() }

// Fleet returns the live nodes of the limiter as last heard; 0 before that.
func (l *Limiter) Fleet() int { return l.fleet.Size() }

// Known returns the limit of an account's key, and what the node knows of it. It
// reads no clock but the one that ticks each SyncInterval, and takes no lock.
func (l *Limiter) Known(a *Account) (*Plan, key.Reading) {
	plan := l.plan.Load()
	if l.planFor != nil {
		plan = a.Plan()
	}
	return plan, a.Known.Read(l.s.coarse.Load())
}

// View returns the limit, the tokens remaining and the time to a full account, as far as
// the node knows.
func (a *Account) View(now int64) (limit, remaining int64, reset time.Duration) {
	return a.Known.Read(now).View(a.Plan(), a.Cell.Alive(&a.limiter().s.Dead))
}
