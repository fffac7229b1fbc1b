package syncer

import (
	"sync"
	"sync/atomic"

	"github.com/hybridlimit/hybrid/precheck"
	"github.com/hybridlimit/hybrid/slice"
)

// Account is one key of one limiter on this node. A service has a million of
// them and most are cold, so what only an account in touch with the store
// needs is in contact, which is made at its first settle. The order of the fields
// matters: an Account is 96 bytes, an allocation of just that size begins at a
// multiple of 32, and so what a request on the slice reads, the first 32, is in one
// line of the cache.
type Account struct {
	// Read by every request, written by whoever holds mu (Take aside).
	Cell   slice.Cell
	fullAt atomic.Int64  // ns, when the account is full again; before the store told, when it was made. See told.go
	free   atomic.Uint32 // tokens, a float32: what was free as the store last told

	floored bool // floor has been started; these four are under mu
	dead    bool // retired: whoever holds a pointer to it must look the key up again
	used    bool // it has served a request
	touched bool // it has served another since the table's hand last came by

	seat    atomic.Pointer[seat]    // never nil; written under mu
	inTouch atomic.Pointer[contact] // nil: none. Written under mu; requests read its memo
	key     string                  // immutable
	mu      sync.Mutex              // never held across I/O or user code
	floor   precheck.Floor          // under mu
}

// seat is where an account belongs. Where keys have no limits of their own they
// share their limiter's seat; else each has one, for a limit that may change while
// the key is in use. Immutable but for asked.
type seat struct {
	lim   *Limiter
	own   *Plan        // a limit of the key's own; nil: the limiter's
	user  string       // the key as the caller gave it, of which the account's may be a digest
	asked atomic.Int64 // ns, when the key's own limit was last asked for
}

// contact is an account's side of its settles.
type contact struct {
	// Costs denied from memory; nil: none. Written under Account.mu, read by every
	// request that found no slice.
	memo atomic.Pointer[precheck.Memo]
	books
}

// books is what the settles are made of. All under Account.mu.
type books struct {
	lease    slice.Lease
	inflight bool // exactly one settle is queued or under way
	lazy     bool // it is queued for later
	paid     bool // it was taken from credit

	// Kept together, or each would take eight bytes.
	loner     bool // the account is not in the table, which is full of busy ones: it serves one request
	saturated bool // the account is full: ask by the pace, deny from memory in between
	outgrown  bool // the slice was granted under another limit and must go back
	outdated  bool // the account was reset since the settle under way was sent: what it says of it is over

	intent  intent    // what the settle queued or under way is for, as far as it is not for needs
	waiting []*waiter // callers for the next settle
	sent    []*waiter // callers whose needs the settle under way carries
	way     *lane     // to the part of the store that the settle under way is for
	since   int64     // ns, when somebody began to wait for the settle queued or under way
	sentAt  int64     // ns, before the call entered the client

	demand  demand
	credit  int64 // requests less operations: what the node's own settles may cost
	counted int64 // tokens of the lease's unreported ones that demand has seen
	unit    int64 // tokens; the cost that grants must be multiples of
	seen    int64 // tokens; the largest cost seen since the last settle
	askedAt int64 // ns, the last request that needed the store

	attempts int64 // tokens attempted since the last settle

	denials demand // requests denied, by denialSpan
	denied  uint64 // requests denied since the account came in touch

	charged      float64 // tokens to charge with the next settle, net of refunds
	chargeWindow int64   // the window that charged and fallback belong to
	fallback     float64 // tokens admitted by policy while the store was away
	bucket       precheck.Bucket
	bucketAt     int64 // ns, when the fallback bucket was made; 0: there is none

	next    int64 // ns, when a saturated account is asked for again
	promise int64 // ns, the earliest retry time told and not yet past

	due        int64 // ns, when the agenda looks at the account; 0: never
	agendaSlot int   // place in the agenda, -1: none; under agenda.mu
	idleTokens int64 // tokens in the cell when the agenda last looked
	idleSince  int64 // ns, when it last saw them change
	lent       int64 // tokens of the account on lease to all nodes, as last told
	markedAt   int64 // ns, when it was last published as scarce
	yieldedAt  int64 // µs of the store, the newest mark obeyed
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
	if c := a.contact(); c != nil {
		was = was || c.lease.Unreported(&a.Cell) != c.counted
	}
	return was
}

// Unlink removes the account from its limiter's table.
func (a *Account) Unlink() { a.limiter().table.Remove(a) }

// limiter returns the limiter that the account is of, always the same.
func (a *Account) limiter() *Limiter { return a.seat.Load().lim }

// contact returns the account's side of its settles, or nil.
func (a *Account) contact() *contact { return a.inTouch.Load() }

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
	now := a.limiter().s.Now()
	blank := a.blank(now)
	if a.busy() || !force && !blank {
		return false
	}
	// Another account would ask for the key's own limit anew: not before that is due,
	// and then this one, which a request may hold already, must not ask as well.
	if s := a.seat.Load(); !force && s.lim.planFor != nil && !s.ask(now) {
		return false
	}
	if !a.floorFull(now) {
		a.limiter().fresh.Spoil(now)
	}
	if c := a.contact(); c != nil && c.bucketAt != 0 && a.fallbackLack(now) > 0 {
		a.limiter().forgotten.Store(now)
	}
	a.dead = true
	if blank && a.contact() != nil {
		a.limiter().s.agenda.set(a, 0) // nothing is left to do
	}
	return true
}

func (a *Account) busy() bool {
	c := a.contact()
	return c != nil && (c.inflight || len(c.waiting) > 0)
}

// blank reports whether the account remembers nothing that a new one would not
// know: no lease, no debt to the store, no denial, a full floor, a full account.
// The caller holds mu.
func (a *Account) blank(now int64) bool {
	if !a.full(now) {
		return false
	}
	c := a.contact()
	if c == nil {
		return a.floorFull(now)
	}
	if m := c.memo.Load(); m != nil && now < m.Until {
		return false
	}
	if c.lease.Holds() || c.charged != 0 || c.fallback != 0 || c.bucketAt != 0 {
		return false
	}
	return a.floorFull(now)
}

// floorFull reports whether the floor is as good as a new one. The caller
// holds mu.
func (a *Account) floorFull(now int64) bool {
	plan := a.Plan()
	return plan.Floor.Cap == 0 || !a.floored || a.ownFloor().Full(now, plan.Floor, &a.limiter().history)
}

// Plan returns the plan in force.
func (a *Account) Plan() *Plan {
	s := a.seat.Load()
	if s.own != nil {
		return s.own
	}
	return s.lim.plan.Load()
}

// touch notes that the account serves a request on the slow path. The request
// that it was made for does not count, or a flood of keys that are used once
// would push out the keys in use. The caller holds mu.
func (a *Account) touch() {
	a.touched = a.used
	a.used = true
}

// inContact returns the account's contact, made when needed. Its demand begins with
// what the floor has served of late: a key that outgrows its floor has been in use for
// a while, and would else ask again for a slice that is made for one request. The
// caller holds mu.
func (a *Account) inContact(now int64) *contact {
	c := a.contact()
	if c == nil {
		c = &contact{books: books{agendaSlot: -1, unit: 1, demand: demand{at: now}, denials: demand{at: now}, idleSince: now}}
		if a.floored {
			c.demand.count = a.ownFloor().Served(now, a.Plan().Floor, &a.limiter().history)
		}
		a.inTouch.Store(c)
	}
	return c
}
