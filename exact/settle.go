package exact

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

// Redis serves nobody else while a script runs: a call takes a fraction of a millisecond.
const (
	maxAccounts = 64  // per script call
	maxNeeds    = 512 // runs of needs per script call, of which 10 cost as much as an account
	maxCalls    = 16  // script calls per round trip, of accounts that need little
)

// Settle executes each settle of the batch at most once, and fills in its
// Outcome, Err, Lone and Grant. It returns when the client has answered for all of
// them. The settles are independent: any may fail while others run. They
// may be for the same account; the order of execution is then that of the
// batch, unless the server is a cluster that redirects.
func (s *Store) Settle(ctx context.Context, batch []*slice.Settle) {
	sound := make([]*slice.Settle, 0, len(batch))
	for _, e := range batch {
		e.Outcome, e.Err, e.Lone, e.Grant = slice.Unknown, nil, false, slice.Grant{}
		if len(e.Usage.Needs) > slice.MaxRuns {
			e.Outcome, e.Lone, e.Err = slice.NotRun, true, fmt.Errorf("%w: %d runs of needs, allowed %d", ErrInvalidCost, len(e.Usage.Needs), slice.MaxRuns)
			continue
		}
		sound = append(sound, e)
	}
	for len(sound) > 0 {
		n := min(len(sound), maxAccounts*maxCalls)
		s.settleRound(ctx, sound[:n])
		sound = sound[n:]
	}
}

// settleRound settles what fits into one round trip.
func (s *Store) settleRound(ctx context.Context, batch []*slice.Settle) {
	groups := s.groups(batch)
	calls := make([]*call, len(groups))
	for i, g := range groups {
		calls[i] = settleCall(g)
	}
	s.run(ctx, calls)
	var split []*slice.Settle
	for i, g := range groups {
		if len(g) > 1 && redis.HasErrorPrefix(calls[i].err, "CROSSSLOT") {
			split = append(split, g...)
			continue
		}
		readReply(g, calls[i])
	}
	if len(split) > 0 { // a cluster behind a plain client; none of these has run
		s.single.Store(true)
		s.settleRound(ctx, split)
	}
}

// groups divides the batch into the accounts of one script call each.
func (s *Store) groups(batch []*slice.Settle) [][]*slice.Settle {
	size := maxAccounts
	switch rdb := s.rdb.(type) {
	case *redis.ClusterClient:
		size = 1
	case *redis.Ring:
		return groupsByShard(rdb, batch)
	}
	if s.single.Load() {
		size = 1
	}
	return split(nil, batch, size)
}

func groupsByShard(rdb *redis.Ring, batch []*slice.Settle) [][]*slice.Settle {
	byShard := make(map[*redis.Client][]*slice.Settle)
	for _, e := range batch {
		shard, err := rdb.GetShardClientForKey(e.Account)
		if err != nil {
			shard = nil // all shards are down; run meets the same error
		}
		byShard[shard] = append(byShard[shard], e)
	}
	var groups [][]*slice.Settle
	for _, part := range byShard {
		groups = split(groups, part, maxAccounts)
	}
	return groups
}

// split divides a batch into calls of at most size accounts and maxNeeds runs.
func split(groups [][]*slice.Settle, batch []*slice.Settle, size int) [][]*slice.Settle {
	from, needs := 0, 0
	for i, e := range batch {
		needs += len(e.Usage.Needs)
		if i-from == size || needs > maxNeeds {
			groups = append(groups, batch[from:i])
			from, needs = i, len(e.Usage.Needs)
		}
	}
	return append(groups, batch[from:])
}
