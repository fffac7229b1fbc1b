package hybrid

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// What docs/operations.md tells of Redis's memory: of an account in the state
// that it is in most of the time, with a slice out and a used that is no whole
// number, for a key of 16 bytes.
func TestMemoryPerAccountInRedis(t *testing.T) {
	const accounts = 100_000
	rdb, ctx := redistest.Start(t).Client(t), context.Background()
	store, err := exact.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	use(t, store, 4096, 16) // so that no buffer grows later
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	empty := usedMemory(t, rdb)
	use(t, store, accounts, 16)
	perAccount := float64(usedMemory(t, rdb)-empty) / accounts
	name := store.Account("api", fmt.Sprintf("%016d", 7))
	alone, err := rdb.MemoryUsage(ctx, name).Result()
	if err != nil {
		t.Fatal(err)
	}
	state := rdb.Get(ctx, name).Val()
	t.Logf("MEMORY USAGE %d B; used_memory %.1f B per account; state %q; %v left", alone, perAccount, state, rdb.PTTL(ctx, name).Val())
	if n := rdb.DBSize(ctx).Val(); n != accounts {
		t.Errorf("%d accounts, want %d", n, accounts)
	}
	if strings.HasSuffix(state, " 0 0") || !strings.Contains(strings.Fields(state)[0], ".") {
		t.Errorf("the state %q is shorter than most", state)
	}
	if alone > 136 {
		t.Errorf("MEMORY USAGE %d B, want at most 136", alone)
	}
	if perAccount > 200 {
		t.Errorf("used_memory %.1f B per account, want at most 200", perAccount)
	}
}

// use settles so many accounts twice: a request that takes a slice along, and,
// later, what was used of it.
func use(t *testing.T, store *exact.Store, accounts, keyLen int) {
	t.Helper()
	rule := PerHour(1000).Rule()
	grants := make([]slice.Grant, accounts)
	for round := range 2 {
		batch := make([]*slice.Settle, accounts)
		for i := range batch {
			batch[i] = &slice.Settle{Account: store.Account("api", fmt.Sprintf("%0*d", keyLen, i)), Rule: rule}
			u := &batch[i].Usage
			u.Want, u.Least, u.Unit, u.Divisor = 25, 1, 1, 40
			switch round {
			case 0:
				u.Needs = []slice.Need{{Cost: 10, Count: 1}}
			case 1:
				u.Tag, u.Spent, u.Held = grants[i].Tag, 20, grants[i].Granted-20
			}
		}
		store.Settle(context.Background(), batch)
		for i, e := range batch {
			if e.Outcome != slice.Ran {
				t.Fatal(e.Err)
			}
			grants[i] = e.Grant
		}
	}
}

func usedMemory(t *testing.T, rdb *redis.Client) int64 {
	t.Helper()
	info := rdb.Info(context.Background(), "memory").Val()
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no used_memory in %q", info)
	return 0
}
