package syncer

import (
	"sync"
	"sync/atomic"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

// Account is one key of one limiter on this node. A service has a million of
// them and most are cold, so what only an account in touch with the store
// needs is in contact, which is made at its first settle.
type Account struct {
	// Read by every request, written by whoever holds mu (Take aside).
	Cell slice.Cell
	told told
	memo atomic.Pointer[precheck.Memo] // costs denied from memory; nil: none
	own  atomic.Pointer[Plan]          // a limit of the key's own; nil: the limiter's
	lim  *Limiter                      // immutable
	key  string                        // immutable

	mu      sync.Mutex // never held across I/O or user code
	floor   precheck.Floor
	contact *contact
	floored bool // floor has been started
	dead    bool // retired: whoever holds a pointer to it must look the key up again
	used    bool // it has served a request
	touched bool // it has served another since the table's hand last came by
	loner   bool // not in the table (it is full of busy accounts): serves one request
}

// contact is an account's side of its settles. All under Account.mu.
type contact struct {
	lease    slice.Lease
	inflight bool      // exactly one settle is queued or under way
	lazy     bool      // it is queued for later
	intent   intent    // what that settle is for, as far as it is not for needs
	waiting  []*waiter // callers for the next settle
	sent     []*waiter // callers whose needs the settle under way carries
	way      *lane     // to the part of the store that the settle under way is for
	since    int64     // ns, when somebody began to wait for the settle queued or under way
	sentAt   int64     // ns, before the call entered the client

	demand  demand
	credit  int64 // requests less operations: what the node's own settles may cost
	paid    bool  // the settle under way was taken from credit
	counted int64 // tokens of the lease's unreported ones that demand has seen
	unit    int64 // tokens; the cost that grants must be multiples of
	seen    int64 // tokens; the largest cost seen since the last settle
	askedAt int64 // ns, the last request that needed the store

	attempts int64 // tokens attempted since the last settle

	charged      float64 // tokens to charge with the next settle, net of refunds
	chargeWindow int64   // the window that charged and fallback belong to
	fallback     float64 // tokens admitted by policy while the store was away
	bucket       precheck.Bucket
	bucketAt     int64 // ns, when the fallback bucket was made; 0: there is none

	saturated bool  // the account is full: ask by the pace, deny from memory in between
	next      int64 // ns, when a saturated account is asked for again
	promise   int64 // ns, the earliest retry time told and not yet past

	due        int64  // ns, when the agenda looks at the account; 0: never
	agendaSlot int    // place in the agenda, -1: none; under agenda.mu
	outgrown   bool   // the slice was granted under another limit and must go back
	idleTokens int64  // tokens in the cell when the agenda last looked
	idleSince  int64  // ns, when it last saw them change
	lent       int64  // tokens of the account on lease to all nodes, as last told
	markedAt   int64  // ns, when it was last published as scarce
	yieldedAt  int64  // µs of the store, the newest mark obeyed
	plannedAt  int64  // ns, when the key's own limit was last asked for
	user       string // the caller's key, where the account's is a digest of it and the limit depends on it
}

// Key, Touched, Retire and Unlink make an Account an entry of the table.
func (a *Account) Key() string { return a.key }

// Touched reports whether the account was used since the last call.
func (a *Account) Touched() bool {
	if !a.mu.TryLock() {
		return true
	}
	defer a.mu.Unlock()
	was := a.touched
	a.touched = false
	if c := a.contact; c != nil {
		was = was || c.lease.Unreported(&a.Cell) != c.counted
	}
	return was
}

// Unlink removes the account from its limiter's table.
func (a *Account) Unlink() { a.lim.table.Remove(a) }

// Retire takes the account out of use. A floor that is not full and is
// forgotten would come back fuller, so the fresh floors of this node pay for it.
func (a *Account) Retire(force bool) bool {
	if !a.mu.TryLock() {
		return false
	}
	defer a.mu.Unlock()
	if a.dead {
		return true
	}
	now := a.lim.s.Now()
	blank := a.blank(now)
	if a.busy() || !force && !blank {
		return false
	}
	if !a.floorFull(now) {
		a.lim.fresh.Spoil(now)
	}
	if c := a.contact; c != nil && c.bucketAt != 0 && a.fallbackLack(now) > 0 {
		a.lim.forgotten.Store(now)
	}
	a.dead = true
	if blank && a.contact != nil {
		a.lim.s.agenda.set(a, 0) // nothing is left to do
	}
	return true
}

func (a *Account) busy() bool {
	c := a.contact
	return c != nil && (c.inflight || len(c.waiting) > 0)
}

// blank reports whether the account remembers nothing that a new one would not
// know: no lease, no debt to the store, no denial, a full floor, a full account.
// The caller holds mu.
func (a *Account) blank(now int64) bool {
	if m := a.memo.Load(); m != nil && now < m.Until {
		return false
	}
	if !a.told.full(now) {
		return false
	}
	if a.lim.planFor != nil && now-a.told.at.Load() < int64(a.lim.s.cfg.SyncInterval) {
		return false // its limit was asked for just now, and would be again
	}
	if c := a.contact; c != nil && (c.lease.Holds() || c.charged != 0 || c.fallback != 0 || c.bucketAt != 0) {
		return false
	}
	return a.floorFull(now)
}

// floorFull reports whether the floor is as good as a new one. The caller
// holds mu.
func (a *Account) floorFull(now int64) bool {
	plan := a.Plan()
	return plan.Floor.Cap == 0 || !a.floored || a.ownFloor().Full(now, plan.Floor, &a.lim.history)
}

// Plan returns the plan in force.
func (a *Account) Plan() *Plan {
	if own := a.own.Load(); own != nil {
		return own
	}
	return a.lim.plan.Load()
}

// touch notes that the account serves a request on the slow path. The request
// that it was made for does not count, or a flood of keys that are used once
// would push out the keys in use. The caller holds mu.
func (a *Account) touch() {
	a.touched = a.used
	a.used = true
}

// inContact returns the account's contact, made when needed. The key's own limit
// was last asked for when the account was made, or before the store last spoke.
// The caller holds mu.
func (a *Account) inContact(now int64) *contact {
	if a.contact == nil {
		a.contact = &contact{agendaSlot: -1, unit: 1, demand: demand{at: now}, idleSince: now, plannedAt: a.told.at.Load()}
	}
	return a.contact
}
