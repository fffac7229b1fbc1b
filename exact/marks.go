package exact

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/slice"
)

const (
	markTTL  = time.Minute // a mark that no holder has seen by then is of no use
	maxMarks = 4096        // kept at once, the newest
)

func (s *Store) marksKey() string { return s.prefix + ":{}r1" }

// Mark tells the nodes that hold slices of these accounts that the tokens
// are needed. Repeating it is harmless: an account and cost has one mark,
// which moves to the newest time.
func (s *Store) Mark(ctx context.Context, marks []slice.Mark) error {
	if len(marks) == 0 {
		return nil
	}
	key, newest := s.marksKey(), int64(0)
	members := make([]redis.Z, len(marks))
	for i, m := range marks {
		members[i] = redis.Z{Score: float64(m.At), Member: markText(m)}
		newest = max(newest, m.At)
	}
	return s.pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZAdd(ctx, key, members...)
		pipe.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(newest-markTTL.Microseconds(), 10))
		pipe.ZRemRangeByRank(ctx, key, 0, -maxMarks-1)
		pipe.PExpire(ctx, key, markTTL)
		return nil
	})
}

// pipelined sends what fill queues in one round trip.
func (s *Store) pipelined(ctx context.Context, fill func(pipe redis.Pipeliner) error) error {
	return guard(func() error {
		_, err := s.rdb.Pipelined(ctx, fill)
		return err
	})
}

// Marks returns marks newer than since (microseconds of the store's clock),
// the oldest first and at most most. The At of the last one is the since of
// the next call.
func (s *Store) Marks(ctx context.Context, since int64, most int) ([]slice.Mark, error) {
	if most <= 0 {
		return nil, nil
	}
	var members []redis.Z
	err := guard(func() (err error) {
		members, err = s.rdb.ZRangeByScoreWithScores(ctx, s.marksKey(), &redis.ZRangeBy{
			Min: "(" + strconv.FormatInt(since, 10), Max: "+inf", Count: int64(most),
		}).Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	marks := make([]slice.Mark, 0, len(members))
	for _, z := range members {
		if m, ok := readMark(z); ok {
			marks = append(marks, m)
		}
	}
	return marks, nil
}

// Claim takes the payments out of marks, which one holder does for each: claimed says of
// which this was.
func (s *Store) Claim(ctx context.Context, marks []slice.Mark) (claimed []bool, err error) {
	if len(marks) == 0 {
		return nil, nil
	}
	replies := make([]*redis.IntCmd, len(marks))
	err = s.pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, m := range marks {
			replies[i] = pipe.ZRem(ctx, s.marksKey(), markText(m))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	claimed = make([]bool, len(marks))
	for i, reply := range replies {
		claimed[i] = reply.Val() == 1
	}
	return claimed, nil
}

// markText is a mark as the set holds it: "50:account", and "50+:account" of one that is
// paid, which versions that do not know of it skip.
func markText(m slice.Mark) string {
	paid := ""
	if m.Paid {
		paid = "+"
	}
	return strconv.FormatInt(m.Cost, 10) + paid + ":" + m.Account
}

// readMark skips what this version did not write.
func readMark(z redis.Z) (slice.Mark, bool) {
	member, _ := z.Member.(string)
	text, account, ok := strings.Cut(member, ":")
	text, paid := strings.CutSuffix(text, "+")
	cost, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return slice.Mark{}, false
	}
	return slice.Mark{Account: account, Cost: cost, At: int64(z.Score), Paid: paid}, true
}
