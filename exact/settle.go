package exact

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

const (
	maxAccounts = 64 // accounts per script call: Redis serves nobody else meanwhile
	maxCalls    = 16 // script calls per round trip
	headArgs    = 15 // arguments of an account before its needs
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

func split(groups [][]*slice.Settle, batch []*slice.Settle, size int) [][]*slice.Settle {
	for len(batch) > size {
		groups, batch = append(groups, batch[:size]), batch[size:]
	}
	return append(groups, batch)
}

// settleCall encodes the contract on top of settle.lua.
func settleCall(group []*slice.Settle) *call {
	argv := 0
	for _, e := range group {
		argv += headArgs + 2*len(e.Usage.Needs)
	}
	c := newCall(settleScript, len(group), argv)
	for _, e := range group {
		c.args = append(c.args, e.Account)
	}
	for _, e := range group {
		c.args = appendSettle(c.args, e)
	}
	return c
}

func appendSettle(args []any, e *slice.Settle) []any {
	u := &e.Usage
	args = append(args,
		integer(e.Rule.Window), integer(e.Rule.Burst), real(e.Rule.Rate),
		integer(u.Tag.Epoch), integer(u.Tag.Window),
		integer(u.Spent), integer(u.Returned), integer(u.Held),
		real(u.Charged), real(u.Fallback),
		integer(u.Want), integer(u.Least), integer(u.Unit), integer(u.Divisor),
		len(u.Needs))
	for _, n := range u.Needs {
		args = append(args, integer(n.Cost), integer(n.Count))
	}
	return args
}

// zero spares most arguments their allocation.
var zero any = "0"

func integer(v int64) any {
	if v == 0 {
		return zero
	}
	return v
}

// real formats v so that the script reads the same double. An exponent gets
// a point before it: the Lua of miniredis does not read 1e-06.
func real(v float64) any {
	if v == 0 {
		return zero
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if mantissa, exponent, ok := strings.Cut(text, "e"); ok && !strings.Contains(mantissa, ".") {
		return mantissa + ".0e" + exponent
	}
	return text
}
