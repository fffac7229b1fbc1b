package syncer

import (
	"context"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// Store is what a syncer needs of the store. All methods may be called from
// any goroutine, and may block for as long as the client behind them does.
type Store interface {
	// Account names the account of a limiter's key, as accounts know it.
	Account(limiter, key string) string
	// Settle executes each of the settles at most once and fills in Outcome,
	// Err and Grant of each.
	Settle(ctx context.Context, batch []*slice.Settle)
	// Heartbeat registers member in each of the fleets for ttl, and fills in
	// Members, Joined and Err of each.
	Heartbeat(ctx context.Context, member string, ttl time.Duration, fleets []*slice.Fleet)
	// Leave removes the registrations.
	Leave(ctx context.Context, member string, limiters []string) error
	// Mark publishes that accounts are scarce.
	Mark(ctx context.Context, marks []slice.Mark) error
	// Claim takes the payments out of paid marks, and says which of them it got: one
	// caller gets each.
	Claim(ctx context.Context, marks []slice.Mark) (claimed []bool, err error)
	// Marks returns at most so many marks made after since (µs of the store).
	Marks(ctx context.Context, since int64, most int) ([]slice.Mark, error)
}

// Sharded is a Store of which parts may fail alone, such as the shards of a
// cluster. A Store that is not Sharded is one part. None of its methods but Probe
// may block.
type Sharded interface {
	// Lanes is how many parts there are, at least 1.
	Lanes() int
	// Lane is the part that an account is in, 0 to Lanes − 1. It may change.
	Lane(account string) int
	// FleetLane is the part that a limiter's registrations are in.
	FleetLane(limiter string) int
	// Probe fails unless the part would execute settles.
	Probe(ctx context.Context, lane int) error
}

// whole is a Store in one part, of which nothing is known but that it is a Store.
type whole struct{ store Store }

func (whole) Lanes() int           { return 1 }
func (whole) Lane(string) int      { return 0 }
func (whole) FleetLane(string) int { return 0 }

// Probe registers in a fleet that has no node.
func (w whole) Probe(ctx context.Context, _ int) error {
	f := &slice.Fleet{}
	w.store.Heartbeat(ctx, "probe", time.Second, []*slice.Fleet{f})
	return f.Err
}
