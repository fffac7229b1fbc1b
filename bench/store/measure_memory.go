package store

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
)

// memory is what an account takes, in bytes.
type memory struct {
	alone float64 // MEMORY USAGE
	share float64 // of used_memory, with its part of the tables
}

// memoryOf stores accounts in a server of their own. source is the script that does;
// "" is the settle script.
func memoryOf(ctx context.Context, source string, accounts int) (memory, error) {
	s, err := startServer()
	if err != nil {
		return memory{}, err
	}
	defer s.stop()
	var hooks []redis.Hook
	if source != "" {
		sha, err := s.rdb.ScriptLoad(ctx, source).Result()
		if err != nil {
			return memory{}, err
		}
		hooks = append(hooks, insteadOf(sha))
	}
	store, err := s.store(hooks...)
	if err != nil {
		return memory{}, err
	}
	store.Settle(ctx, []*slice.Settle{{Account: "hybrid:{}a1:3:api:first", Rule: wide}}) // loads the script, writes nothing
	before, err := s.memory(ctx)
	if err != nil {
		return memory{}, err
	}
	if err := live(ctx, store, accounts); err != nil {
		return memory{}, err
	}
	after, err := s.memory(ctx)
	if err != nil {
		return memory{}, err
	}
	usage, err := s.rdb.MemoryUsage(ctx, store.Account("api", key(0))).Result()
	return memory{alone: float64(usage), share: (after - before) / float64(accounts)}, err
}

func key(i int) string { return fmt.Sprintf("%016d", i) }

// live settles accounts twice: a request that takes a slice along, and, later, what was
// used of it.
func live(ctx context.Context, store *exact.Store, accounts int) error {
	const atOnce = 1024
	rule := exact.PerHour(1000).Rule()
	for from := 0; from < accounts; from += atOnce {
		var settles []*slice.Settle
		for i := from; i < min(from+atOnce, accounts); i++ {
			settles = append(settles, &slice.Settle{Account: store.Account("api", key(i)), Rule: rule,
				Usage: slice.Usage{Needs: []slice.Need{{Cost: 10, Count: 1}}, Want: 25, Least: 1, Unit: 1, Divisor: 40}})
		}
		for range 2 {
			store.Settle(ctx, settles)
			for _, e := range settles {
				if e.Err != nil {
					return e.Err
				}
				e.Usage = slice.Usage{Tag: e.Grant.Tag, Spent: 20, Held: e.Grant.Granted - 20, Want: 25, Least: 1, Unit: 1, Divisor: 40}
			}
		}
	}
	return nil
}
