package syncer

import (
	"context"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// This file is what callers do to an account besides asking for admission.

// Charge adds n tokens that were used without asking. It takes them from the
// slice if they are there; otherwise the next settle charges them, which a tick
// sends at the latest. ok is false if the account was retired, or its limiter closed.
func (a *Account) Charge(n int64) (ok bool) {
	return a.adjust(1, func() (left float64) {
		if a.takeLocal(n) {
			return 0
		}
		return float64(n)
	})
}

// Refund gives back n tokens of an admission that did not happen after all: to
// the slice, if they can have come from it, otherwise with the next settle. ok
// is false if the account was retired, or its limiter closed.
func (a *Account) Refund(n int64) (ok bool) { return a.giveBack(n, 1) }

// PutBack is Refund of an admission whose caller goes on with a denial: part of
// one request, it does not pay for an operation of its own. What the slice
// cannot take goes with the next settle that a request pays for.
func (a *Account) PutBack(n int64) (ok bool) { return a.giveBack(n, 0) }

func (a *Account) giveBack(n, pays int64) (ok bool) {
	return a.adjust(pays, func() (left float64) {
		if c := a.contact(); c != nil && c.lease.Return(&a.Cell, n, &a.limiter().s.Dead) {
			return 0
		}
		return -a.forgive(n)
	})
}

// PutBackFloor is PutBack of an admission by the floor.
func (a *Account) PutBackFloor(n int64) (ok bool) {
	return a.adjust(0, func() (left float64) {
		if a.ownFloor().Put(n) {
			return 0
		}
		return -float64(n)
	})
}

// PutBackFallback is PutBack of an admission by the failure policy.
func (a *Account) PutBackFallback(n int64) (ok bool) {
	return a.adjust(0, func() (left float64) { return -a.forgive(n) })
}

// forgive takes n tokens out of what the failure policy has admitted and nobody has
// been charged for yet, as far as it goes, and returns the rest. If all of it went to
// the store instead, it would give back there what is not charged in full, or not yet:
// a refund ends where nothing is used. The caller holds mu.
func (a *Account) forgive(n int64) (rest float64) {
	c := a.contact()
	if c == nil {
		return float64(n)
	}
	part := min(float64(n), c.fallback)
	c.fallback -= part
	if now := a.limiter().s.Now(); c.bucketAt != 0 {
		c.bucket.Put(now, int64(part), a.fallbackSize(now))
	}
	return float64(n) - part
}

// adjust changes the account, locally as far as that can be done; what is left is
// charged with its next settle, towards which it pays so many operations.
func (a *Account) adjust(pays int64, local func() (left float64)) bool {
	s := a.limiter().s
	now := s.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead {
		return false
	}
	a.touch()
	left := local()
	if left == 0 {
		return true
	}
	if a.limiter().closed.Load() { // nobody would settle it any more
		return false
	}
	c := a.inContact(now)
	a.turnWindow(a.Plan(), now)
	c.owe(left)
	c.earn(pays)
	if !c.inflight {
		s.agenda.sooner(a, now+s.tick())
	}
	return true
}

// owe adds to what the next settle charges, within what a settle can say.
func (c *contact) owe(tokens float64) {
	c.charged = min(max(c.charged+tokens, -slice.MaxTokens), slice.MaxTokens)
}

// unheard keeps what a settle of unknown outcome was to charge. Told twice it is a debt
// that drains; never told it would be lost. A refund is not told again: twice it would
// give back more than was taken.
func (c *contact) unheard(u slice.Usage) {
	u.Charged = max(0, u.Charged)
	c.untold(&u)
}

// untold takes back what a settle that did not run was to charge.
func (c *contact) untold(u *slice.Usage) {
	if c.current(u) {
		c.owe(u.Charged)
		c.fallback += u.Fallback
	}
}

// current reports whether what a settle was to charge still counts: not if somebody has
// charged the next window while it was under way.
func (c *contact) current(u *slice.Usage) bool {
	return u.Tag.Window == 0 || c.chargeWindow == 0 || u.Tag.Window == c.chargeWindow
}

// Read asks the store for the state of a key and changes nothing, here or
// there. It waits for StoreTimeout at most.
func (l *Limiter) Read(ctx context.Context, key string, rule slice.Rule) (slice.Grant, error) {
	return l.consult(ctx, key, &slice.Settle{Rule: rule})
}

// everything is more than an account can have in use.
const everything = slice.MaxTokens

// Reset frees all of a key's account but what is out on lease, and forgets this
// node's denial. It waits for StoreTimeout at most.
func (l *Limiter) Reset(ctx context.Context, key string, rule slice.Rule) error {
	st := &slice.Settle{Rule: rule, Usage: slice.Usage{Charged: -everything}}
	if _, err := l.consult(ctx, key, st); err != nil {
		return err
	}
	if a, ok := l.table.Load(key); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.limiter().s.Now()
		a.forgetTold(now)
		if c := a.contact(); c != nil {
			c.charged, c.fallback = 0, 0
			c.outdated = c.inflight
		}
		if a.floored {
			a.ownFloor().Owed(now, a.Plan().Floor, &l.history)
		}
		a.forgetDenial(now)
		l.s.laneOf(l.name, key).dispatch.nudge()
	}
	return nil
}

// consult executes one settle of a key outside any cell.
func (l *Limiter) consult(ctx context.Context, key string, st *slice.Settle) (slice.Grant, error) {
	s := l.s
	if l.closed.Load() {
		return slice.Grant{}, ErrClosed
	}
	way := s.laneOf(l.name, key)
	if way.down() {
		return slice.Grant{}, ErrDown
	}
	st.Account = s.store.Account(l.name, key)
	sentAt := s.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StoreTimeout, ErrTimeout)
	defer cancel()
	err := within(ctx, func() error {
		said := []*slice.Settle{st}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience())
		defer cancel()
		over := sync.OnceFunc(func() { s.Counts.call(s.Now()-sentAt, 1) })
		defer time.AfterFunc(s.patience(), over).Stop() // the context may be looked at too late
		s.store.Settle(late, said)
		over()
		way.judge(said, sentAt)
		return nil
	})
	switch {
	case err != nil:
		return slice.Grant{}, context.Cause(ctx)
	case st.Outcome != slice.Ran:
		return slice.Grant{}, st.Err
	}
	l.Counts.operation(&st.Usage, &st.Grant)
	return st.Grant, nil
}
