package syncer

import (
	"strings"

	"github.com/hybridlimit/hybrid/internal/key"
)

// This file is an account as an entry of the limiter's table: how it is made, when it may
// go, and what becomes of it then.

// Load returns the account of a key, if there is one. It is the first half of a
// request: the second is Take on the account's Cell.
func (l *Limiter) Load(name string) (*Account, bool) { return l.table.Load(name) }

// Account returns the account of a key, made when needed. user is the key as the caller
// gave it, where name is a digest of it.
func (l *Limiter) Account(name, user string) *Account {
	if a, ok := l.table.Load(name); ok {
		return a
	}
	name = strings.Clone(name) // callers may cut keys from larger strings, or from buffers
	now := l.s.Now()
	var own *Plan
	if l.planFor != nil {
		own = l.planFor(user)
	}
	a, evicted, stored := l.table.LoadOrMake(name, func() *Account { return l.newAccount(name, user, own, now) })
	if !stored {
		a.mu.Lock()
		a.Known.Untracked = true
		a.mu.Unlock()
	}
	for _, old := range evicted {
		old.evict()
	}
	return a
}

func (l *Limiter) newAccount(name, user string, own *Plan, now int64) *Account {
	a := &Account{name: name}
	a.binding.Store(l.bind(own, l.userKey(name, user), now))
	a.Known.Start(now)
	return a
}

// userKey is the user's key as a binding keeps it: nothing where it is not asked for, and
// one string in memory, not two, where it is the account's.
func (l *Limiter) userKey(name, user string) string {
	switch {
	case l.planFor == nil:
		return ""
	case user == name:
		return name
	default:
		return strings.Clone(user)
	}
}

// bind returns the binding of an account whose own limit was asked for just now.
func (l *Limiter) bind(own *Plan, user string, now int64) *binding {
	if l.planFor == nil {
		return &l.common
	}
	b := &binding{limiter: l, own: own, user: user}
	b.asked.Store(now)
	return b
}

// Key returns the key in the table.
func (a *Account) Key() string { return a.name }

// Unlink removes the account from its limiter's table.
func (a *Account) Unlink() { a.limiter().table.Remove(a) }

// Touched reports whether the account was used since the last call.
func (a *Account) Touched() bool {
	if !a.mu.TryLock() {
		return true
	}
	defer a.mu.Unlock()
	was := a.Known.Touched()
	if c := a.active.Load(); c != nil {
		was = was || c.state.Unseen(&a.Cell)
	}
	return was
}

// Retire takes the account out of use. A floor that is not full and is forgotten would
// come back fuller, so the fresh floors of this node pay for it.
func (a *Account) Retire(force bool) bool {
	if !a.mu.TryLock() {
		return false
	}
	defer a.mu.Unlock()
	if a.Known.Retired {
		return true
	}
	l := a.limiter()
	t := a.stepLocked(l.s.Now())
	c := a.active.Load()
	pristine := a.pristineLocked(&t)
	if c != nil && c.state.Busy() || !force && !pristine {
		return false
	}
	// Another account would ask for the key's own limit anew: not before that is due,
	// and then this one, which a request may hold already, must not ask as well.
	if b := a.binding.Load(); !force && l.planFor != nil && !b.mayAsk(t.Now) {
		return false
	}
	if !t.FloorFull() {
		l.fleet.Fresh().Spoil(t.Now)
	}
	if c != nil && c.state.ShareLacks(&t) {
		l.shared.forgotten.Store(t.Now)
	}
	a.Known.Retired = true
	if pristine && c != nil {
		l.s.timers.plan(a, key.StopTimer, 0) // nothing is left to do
	}
	return true
}

// pristineLocked reports whether the account remembers nothing that a new one would
// not know.
func (a *Account) pristineLocked(t *key.Step) bool {
	if !a.Known.Full(t.Now) || !t.FloorFull() {
		return false
	}
	c := a.active.Load()
	return c == nil || c.state.Pristine(t)
}

// evict ends an account that has left the table. Until the store knows what it has to tell,
// the limiter keeps it outside of the table.
func (a *Account) evict() {
	a.update(func(s *key.State, t *key.Step) {
		if s.Evict(t); !t.Idle {
			a.limiter().outside.add(a)
		}
	})
}
