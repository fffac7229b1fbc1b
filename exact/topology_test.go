package exact

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// mustRun settles, and fails unless all ran and admitted their one token.
func mustRun(t testing.TB, s *Store, batch []*slice.Settle) {
	t.Helper()
	s.Settle(context.Background(), batch)
	for i, e := range batch {
		if e.Outcome != slice.Ran || e.Grant.Admitted[0] != 1 {
			t.Fatalf("%d: %v %v %+v", i, e.Outcome, e.Err, e.Grant)
		}
	}
}

// hostile are keys that break naive key schemes.
func hostile() []string {
	keys := []string{"", "a", "{", "}", "{}", "{a}", "a{b}c", "}{", " ", "a b", "\n", "\r\n", "a\r\nb", "\x00", "a\x00b",
		"\xff\xfe", "caf\xe9", ":", "a:b", "1:a", "%s", "*", "\"", "'", "\\", "日本", strings.Repeat("{", 70),
		strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 4096), strings.Repeat("\n", 4096)}
	return append(keys, CellKey(strings.Repeat("x", 65))) // the digest of another key, as a key
}

func TestClusterAnyKeys(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	s := newStore(t, cluster.Client(t))
	var batch []*slice.Settle
	for _, k := range hostile() {
		for _, limiter := range []string{"api", "a{b", "x:y", ""} {
			batch = append(batch, &slice.Settle{Account: s.Account(limiter, CellKey(k)), Rule: slow.Rule(),
				Usage: slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 1}}}})
		}
	}
	batch = append(batch, ones(s, 10_000, "k")...)
	for range 2 {
		mustRun(t, s, batch)
	}
	for _, e := range batch {
		if e.Grant.Used < 1.99 || e.Grant.Used > 2 { // any collision would make it more
			t.Fatalf("%q: used %v", e.Account, e.Grant.Used)
		}
	}
	for _, server := range cluster.Servers {
		if n := server.Client(t).DBSize(context.Background()).Val(); n < 3000 {
			t.Errorf("a primary has %d of the accounts", n)
		}
	}
}

func TestAccountsNeverCollide(t *testing.T) {
	s, seen := newStore(t, redistest.MiniClient(t)), map[string]string{}
	for _, limiter := range append(hostile(), "a:b", "a") {
		for _, key := range append(hostile(), "c", "b:c") {
			id := fmt.Sprintf("%q %q", limiter, key)
			if other, ok := seen[s.Account(limiter, CellKey(key))]; ok && other != id {
				t.Fatalf("%s and %s are one account", id, other)
			}
			seen[s.Account(limiter, CellKey(key))] = id
		}
	}
}

// After SCRIPT FLUSH, exactly the commands that met NOSCRIPT are sent again, with the source.
func TestNoScript(t *testing.T) {
	ctx := context.Background()
	check := func(t *testing.T, s *Store, flush func()) {
		for round := range 3 {
			flush()
			mustRun(t, s, ones(s, 1, "single"))
			flush()
			mustRun(t, s, ones(s, 64, "batch"))
			flush()
			mustRun(t, s, ones(s, 700, "pipeline"))
			for key, n := range map[string]int64{"single0": 1, "batch63": 1, "pipeline0": 1, "pipeline699": 1} {
				if got := taken(t, s, key); got != n*int64(round+1) {
					t.Fatalf("%s: %d", key, got)
				}
			}
		}
	}
	t.Run("client", func(t *testing.T) {
		redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
			check(t, newStore(t, rdb), func() { rdb.ScriptFlush(ctx) })
		})
	})
	t.Run("cluster, one node of three", func(t *testing.T) {
		cluster := redistest.StartCluster(t, 3)
		n, clients := 0, []*redis.Client{}
		for _, server := range cluster.Servers {
			clients = append(clients, server.Client(t))
		}
		check(t, newStore(t, cluster.Client(t)), func() { n++; clients[n%3].ScriptFlush(ctx) })
	})
	t.Run("ring", func(t *testing.T) {
		a, b := redistest.Start(t), redistest.Start(t)
		rdb := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Addr, "b": b.Addr}})
		t.Cleanup(func() { _ = rdb.Close() })
		client := a.Client(t)
		check(t, newStore(t, rdb), func() { client.ScriptFlush(ctx) })
		if client.DBSize(ctx).Val() < 200 || b.Client(t).DBSize(ctx).Val() < 200 {
			t.Error("the accounts are not spread over the shards")
		}
	})
}

// A plain client of a cluster node meets CROSSSLOT, and falls back to one account per call.
func TestCrossSlot(t *testing.T) {
	cluster := redistest.StartCluster(t, 1)
	s := newStore(t, cluster.Servers[0].Client(t))
	mustRun(t, s, ones(s, 150, "k"))
	mustRun(t, s, ones(s, 150, "k"))
	if got := taken(t, s, "k149"); got != 2 || !s.single.Load() {
		t.Fatal(got, s.single.Load())
	}
}

// While a slot moves, keys that have moved are asked for with ASK, and after it with MOVED. Each settles once.
func TestSlotMoves(t *testing.T) {
	ctx := context.Background()
	cluster := redistest.StartCluster(t, 2)
	rdb := cluster.Client(t)
	s := newStore(t, rdb)
	from, to := cluster.Servers[0].Client(t), cluster.Servers[1].Client(t)
	var key string
	for i := 0; key == ""; i++ {
		if slot := rdb.ClusterKeySlot(ctx, s.Account("api", fmt.Sprint(i))).Val(); slot < 8192 {
			key = fmt.Sprint(i)
		}
	}
	slot := rdb.ClusterKeySlot(ctx, s.Account("api", key)).Val()
	fromID, toID := from.ClusterMyID(ctx).Val(), to.ClusterMyID(ctx).Val()
	do := func(rdb *redis.Client, args ...any) {
		t.Helper()
		if err := rdb.Do(ctx, args...).Err(); err != nil {
			t.Fatal(args, err)
		}
	}
	mustRun(t, s, []*slice.Settle{one(s, key)})
	do(to, "cluster", "setslot", slot, "importing", fromID)
	do(from, "cluster", "setslot", slot, "migrating", toID)
	host, port, _ := strings.Cut(cluster.Servers[1].Addr, ":")
	do(from, "migrate", host, port, s.Account("api", key), 0, 1000)
	mustRun(t, s, append(ones(s, 50, "other"), one(s, key))) // ASK
	do(to, "cluster", "setslot", slot, "node", toID)
	do(from, "cluster", "setslot", slot, "node", toID)
	mustRun(t, s, append(ones(s, 50, "other"), one(s, key))) // MOVED
	if got := taken(t, s, key); got != 3 {
		t.Fatalf("counted %d times", got)
	}
}

// The replies of an owner that a slot has moved to are lost: the error of the redirection must not pass for the outcome.
func TestLostReplyAfterMoved(t *testing.T) {
	cluster := redistest.StartCluster(t, 2)
	p := redistest.NewProxy(t, cluster.Servers[1].Addr)
	first := cluster.Servers[0].Addr
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{first},
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { // out of date: the first node owns everything
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: first}}}}, nil
		},
		NewClient: func(o *redis.Options) *redis.Client {
			if o.Addr == cluster.Servers[1].Addr {
				o.Addr = p.Addr
			}
			return redis.NewClient(o)
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	s, truth := newStore(t, rdb), newStore(t, cluster.Client(t))
	mustRun(t, s, ones(s, 40, "warm"))
	p.CutAfter(1, settleScript.sha)
	batch := ones(s, 40, "k")
	s.Settle(context.Background(), batch)
	for i, e := range batch {
		got := taken(t, truth, fmt.Sprint("k", i))
		if got > 1 || e.Outcome == slice.Ran && got != 1 || e.Outcome == slice.NotRun && got != 0 {
			t.Fatalf("account %d: %v (%v), and counted %d times", i, e.Outcome, e.Err, got)
		}
	}
	if p.Hits() != 1 || outcomes(batch)[slice.Unknown] == 0 {
		t.Fatal(p.Hits(), outcomes(batch))
	}
}

func TestSentinelFailover(t *testing.T) {
	sentinel := redistest.StartSentinel(t)
	s := newStore(t, sentinel.Client(t))
	mustRun(t, s, ones(s, 100, "k"))
	sentinel.Primary.Kill()
	var n int
	redistest.Eventually(t, "the replica is the primary", func() bool {
		n++
		e := one(s, fmt.Sprint("after", n))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Settle(ctx, []*slice.Settle{e})
		return e.Outcome == slice.Ran
	})
	mustRun(t, s, ones(s, 100, "k"))
}
