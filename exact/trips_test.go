package exact

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// trips notes how many settles each round trip to a server carries, by its address.
type trips struct {
	mu   sync.Mutex
	seen map[string][]int
}

// of is the hook of one server's client.
func (tr *trips) of(addr string) redis.Hook { return tripHook{tr, addr} }

func (tr *trips) add(addr string, cmds ...redis.Cmder) {
	n := 0
	for _, cmd := range cmds {
		if cmd.Name() == "evalsha" || cmd.Name() == "eval" {
			n++
		}
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if n > 0 {
		tr.seen[addr] = append(tr.seen[addr], n)
	}
}

// take returns what was noted since the last time.
func (tr *trips) take() map[string][]int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	seen := tr.seen
	tr.seen = map[string][]int{}
	return seen
}

type tripHook struct {
	*trips

	addr string
}

func (h tripHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h tripHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.add(h.addr, cmd)
		return next(ctx, cmd)
	}
}

func (h tripHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.add(h.addr, cmds...)
		return next(ctx, cmds)
	}
}

// A cluster takes a batch in one round trip to each primary, all at once.
func TestOneRoundTripPerNodeOfACluster(t *testing.T) {
	rdb, tr := redistest.StartCluster(t, 3).Client(t), &trips{seen: map[string][]int{}}
	rdb.OnNewNode(func(node *redis.Client) { node.AddHook(tr.of(node.Options().Addr)) })
	s := newStore(t, rdb)
	mustRun(t, s, ones(s, 300, "warm")) // everybody knows the script
	tr.take()
	mustRun(t, s, ones(s, 64, "k"))
	seen, settles := tr.take(), 0
	for addr, of := range seen {
		if len(of) != 1 {
			t.Errorf("%s: round trips with %v settles", addr, of)
		}
		for _, n := range of {
			settles += n
		}
	}
	if len(seen) != 3 || settles != 64 {
		t.Errorf("64 accounts on three primaries: %v", seen)
	}
}

// One server takes up to 1024 accounts in one round trip, and no call is so large that others wait
// long for it: neither in accounts nor in needs.
func TestCallsAreSmallAndTripsAreFew(t *testing.T) {
	rdb, tr := redistest.Start(t).Client(t), &trips{seen: map[string][]int{}}
	s := newStore(t, rdb)
	mustRun(t, s, ones(s, 1, "script"))
	rdb.AddHook(tr.of("server"))
	settle := func(batch []*slice.Settle, want ...int) {
		t.Helper()
		s.Settle(context.Background(), batch)
		for _, e := range batch {
			if e.Outcome != slice.Ran || len(e.Grant.Admitted) != len(e.Usage.Needs) {
				t.Fatal(e.Outcome, e.Err)
			}
		}
		got := tr.take()["server"]
		if len(got) != len(want) {
			t.Fatalf("%d accounts: calls by round trip %v, want %v", len(batch), got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%d accounts: calls by round trip %v, want %v", len(batch), got, want)
			}
		}
	}
	settle(ones(s, 1, "a"), 1)
	settle(ones(s, 64, "b"), 1)
	settle(ones(s, 65, "c"), 2)
	settle(ones(s, 1024, "d"), 16)
	settle(ones(s, 1025, "e"), 16, 1)
	for perAccount, calls := range map[int]int{8: 1, 9: 2, slice.MaxRuns: 8} {
		batch := ones(s, 64, "f")
		for _, e := range batch {
			for len(e.Usage.Needs) < perAccount {
				e.Usage.Needs = append(e.Usage.Needs, e.Usage.Needs[0])
			}
		}
		settle(batch, calls)
	}
}
