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
	// Marks returns at most so many marks made after since (µs of the store).
	Marks(ctx context.Context, since int64, most int) ([]slice.Mark, error)
}
