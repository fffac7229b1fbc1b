package exact

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

func (s *Store) membersKey(limiter string) string { return s.prefix + ":{}m1:" + limiter }

// Heartbeat registers member in the fleet of each limiter, for ttl (1 ms to
// 10^9 ms, the same for all members), and fills in the fleets' Members, Joined
// and Err. It is sent at most once, because a repetition would not know that
// it joined; so after an error, the next heartbeat may report Joined = false
// although the lost one joined: whoever needs to know has to treat a
// registration that was not confirmed within ttl as lapsed.
func (s *Store) Heartbeat(ctx context.Context, member string, ttl time.Duration, fleets []*slice.Fleet) {
	calls := make([]*call, len(fleets))
	for i, f := range fleets {
		calls[i] = newCall(heartbeatScript, 1, 2)
		calls[i].args = append(calls[i].args, s.membersKey(f.Limiter), member, ttl.Milliseconds())
	}
	s.run(ctx, calls)
	for i, f := range fleets {
		readFleet(f, calls[i])
	}
}

// readFleet decodes {joined, member...}.
func readFleet(f *slice.Fleet, c *call) {
	f.Members, f.Joined, f.Err, f.Lone, f.Refused = nil, false, c.err, false, false
	if f.Err != nil {
		f.Refused = isReply(f.Err)
		f.Lone = strings.Contains(f.Err.Error(), "WRONGTYPE") // Redis 6 puts it behind words of its own
		return
	}
	reply, _ := c.reply.([]any)
	if len(reply) < 2 {
		f.Err = ErrReply
		return
	}
	f.Joined = reply[0] == int64(1)
	for _, m := range reply[1:] {
		name, ok := m.(string)
		if !ok {
			f.Members, f.Err = nil, ErrReply
			return
		}
		f.Members = append(f.Members, name)
	}
	slices.Sort(f.Members)
}

// Leave ends the registration of member in the fleets of the limiters. A
// fleet that cannot be told finds out by itself once the ttl is over; the
// error is the first of them.
func (s *Store) Leave(ctx context.Context, member string, limiters []string) error {
	err := s.pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, l := range limiters {
			pipe.ZRem(ctx, s.membersKey(l), member)
		}
		return nil
	})
	return err
}
