package exact

import (
	"context"
	"fmt"
	"testing"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// BenchmarkSettle settles 64 accounts a call, as a tick of a syncer does: each reports a slice and renews it.
// redis-us/account is Redis's own time (INFO commandstats).
func BenchmarkSettle(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	s := newStore(b, rdb)
	ctx := context.Background()
	batch := make([]*slice.Settle, 64)
	for i := range batch {
		batch[i] = &slice.Settle{Account: s.Account("api", fmt.Sprint("user-", i)), Rule: PerSecond(1000).Rule(),
			Usage: slice.Usage{Want: 50, Least: 1, Unit: 1, Divisor: 10}}
	}
	s.Settle(ctx, batch)
	rdb.ConfigResetStat(ctx)
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range batch {
			if e.Outcome != slice.Ran {
				b.Fatal(e.Err)
			}
			g := e.Grant
			e.Usage.Tag, e.Usage.Spent, e.Usage.Held = g.Tag, g.Granted, 0
		}
		s.Settle(ctx, batch)
	}
	var calls, us int64
	info := rdb.Info(ctx, "commandstats").Val()
	fmt.Sscanf(info[indexAfter(info, "cmdstat_evalsha:"):], "calls=%d,usec=%d", &calls, &us)
	b.ReportMetric(float64(us)/float64(calls)/64, "redis-us/account")
}

// BenchmarkCodec is what a batch of 64 costs the node besides the client: its call is written,
// and its reply read.
func BenchmarkCodec(b *testing.B) {
	var batch []*slice.Settle
	reply := []any{int64(t0)}
	for i := range 64 {
		e := &slice.Settle{Account: fmt.Sprint("hybrid:{}a1:3:api:user-", i), Rule: PerMinute(1000).Rule(),
			Usage: slice.Usage{Tag: slice.Tag{Epoch: t0 / slice.Epoch}, Spent: int64(i), Held: 40, Charged: 0.375, Want: 50, Least: 2, Unit: 1, Divisor: 40}}
		if i%8 == 0 {
			e.Usage.Needs = []slice.Need{{Cost: 1, Count: 1}}
		}
		batch = append(batch, e)
		reply = append(reply, int64(0), int64(0), "417.01234567890123", int64(417), int64(24))
		for range e.Usage.Needs {
			reply = append(reply, int64(1))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c := settleCall(batch)
		c.reply = reply
		if readReply(batch, c); batch[63].Outcome != slice.Ran {
			b.Fatal(batch[63].Err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/settle")
}

func indexAfter(s, sub string) int {
	for i := range s {
		if len(s)-i > len(sub) && s[i:i+len(sub)] == sub {
			return i + len(sub)
		}
	}
	return 0
}
