package hybrid

import (
	"context"
	"fmt"

	"github.com/hybridlimit/hybrid/exact"
)

// Check is one limit that a request must pass. Two checks of one key are two costs, of
// which each is judged alone: RetryAfter does not know that both can never pass.
type Check struct {
	Limiter *Limiter // of the node that is asked
	Key     string
	N       int64 // tokens; 0 means 1
}

// cost is what the check takes.
func (c *Check) cost() int64 {
	if c.N == 0 {
		return 1
	}
	return c.N
}

// AllowAll decides a request that several limits must admit: per second and per
// day, per user and per tenant. All are charged or none: when one denies, what
// the others gave is put back at once, less what has drained since; in a window that is
// over meanwhile it is gone. The Result is that of the limit that denied. If none
// does, it is that of one that only shadow mode let pass, or else of the tightest one;
// Result.Check says which. Limits in shadow mode are asked last, so that they count
// only what the others admit.
//
// Those that need Redis are asked one after the other, and wait for StoreTimeout
// in all at most. Limits that this node can deny alone, from memory or because the cost
// can never pass, are looked at first, so that a denial by one does not wear the slices
// of the others.
//
// It fails like AllowN, and with ErrInvalidOption for a Limiter that is nil or
// of another node. Without checks it admits.
func (n *Node) AllowAll(ctx context.Context, checks ...Check) (Result, error) {
	for i := range checks {
		c := &checks[i]
		if c.Limiter == nil || c.Limiter.node != n {
			return Result{}, invalid("Check.Limiter", fmt.Sprintf("check %d", i), "a limiter of this node")
		}
		if err := c.Limiter.usable(c.Key, c.cost()); err != nil {
			return Result{}, err
		}
	}
	for i := range checks {
		if r, ok := checks[i].denied(); ok {
			r.Check = int32(i)
			return r, nil
		}
	}
	turn := n.undoing.enter() // the end of a limiter waits for what is to be undone
	defer n.undoing.leave(turn)
	return n.takeAll(ctx, checks, n.sync.Now())
}

// denied answers a check that this node can deny without taking anything: from memory, or
// because the cost can never pass.
func (c *Check) denied() (Result, bool) {
	l, n := c.Limiter, c.cost()
	if l.opts.Shadow {
		return Result{}, false
	}
	a := l.known(c.Key)
	switch {
	case a == nil:
		return l.unfit(n)
	case a.Cell.Alive(l.dead) >= n:
		return Result{}, false
	}
	now := l.node.sync.Now()
	answer, decided := a.DecideHere(n, now)
	return describe(a, answer, n, now), decided && !answer.Allowed
}

// unfit denies what can never pass on a key that has no account, and needs none for it.
func (l *Limiter) unfit(n int64) (Result, bool) {
	plan := l.core.Plan()
	if plan.Fits(n) {
		return Result{}, false
	}
	l.core.Counts.ExactDenied.Add(1)
	r := Result{Limit: plan.Burst, RetryAfter: Never, Path: PathExact}
	if !plan.Never {
		r.Remaining = min(plan.Burst, n-1)
	}
	return r, true
}

// takeAll takes from each limit in turn, waits for Redis until a moment of the node's
// clock, and undoes what it took when one denies or fails.
func (n *Node) takeAll(ctx context.Context, checks []Check, now int64) (Result, error) {
	until := now + int64(n.opts.StoreTimeout)
	var few [8]Result // most requests have fewer limits: no allocation
	taken := few[:0]
	telling := Result{Allowed: true}
	for _, shadow := range [...]bool{false, true} {
		for i := range checks {
			c := &checks[i]
			if c.Limiter.opts.Shadow != shadow {
				continue
			}
			r, err := c.Limiter.allow(ctx, c.Key, c.cost(), until)
			if err == nil {
				r.Check = int32(i)
			}
			if err != nil || !r.Allowed {
				for _, t := range taken {
					checks[t.Check].undo(t, now) // now is earlier than each was taken: less comes back, never more
				}
				return r, err
			}
			taken = append(taken, r)
			if len(taken) == 1 || tellsMore(r, telling) {
				telling = r
			}
		}
	}
	return telling, nil
}

// tellsMore reports whether a is the answer to a request rather than b, both of which
// admit it: what only shadow mode let pass must not be hidden by a tighter limit, or
// whoever watches the trial would miss it. Else what remains of the limit counts.
func tellsMore(a, b Result) bool {
	if a.Shadowed != b.Shadowed {
		return a.Shadowed
	}
	return float64(a.Remaining)*float64(b.Limit) < float64(b.Remaining)*float64(a.Limit)
}

// undo gives back what a check took at a moment of the node's clock.
func (c *Check) undo(r Result, takenAt int64) {
	if r.Shadowed {
		return // it was denied, and took nothing
	}
	cell := exact.CellKey(c.Key)
	for !c.Limiter.core.Account(cell, c.Key).Undo(c.cost(), r.Path, takenAt) {
	}
}
