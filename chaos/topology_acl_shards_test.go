package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// What the clients of a cluster and of a ring need beyond the least, and no more.
func TestLeastACLOfClusterAndRing(t *testing.T) {
	takesLong(t)
	cluster := redistest.StartCluster(t, 2)
	proveLeast(t, "cluster", cluster.Servers, leastForCluster, func() error { return useCluster(t, cluster) })
	shards := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	proveLeast(t, "ring", shards, leastForRing, func() error { return useRing(t, shards) })
}

// proveLeast fails the test unless use works with the commands on top of the
// least, and does not without any one of them.
func proveLeast(t *testing.T, topology string, servers []*redistest.Server, commands []string, use func() error) {
	t.Helper()
	try := func(commands []string) error {
		for _, s := range servers {
			s.SetUser(t, limiterUser, limiterPassword, rights(leastKeys, leastCommands, commands)...)
			s.Client(t).FlushAll(context.Background())
			s.Client(t).ConfigResetStat(context.Background())
		}
		return use()
	}
	if err := try(commands); err != nil {
		t.Errorf("%s with %v: %v", topology, commands, err)
	}
	for i, command := range commands {
		err := try(slices.Delete(slices.Clone(commands), i, i+1))
		if t.Logf("%s without +%s: %v", topology, command, err); err == nil {
			t.Errorf("%s without +%s: nothing failed", topology, command)
		}
	}
}

// useCluster is useAll on a cluster; then a key is asked for while its slot moves.
func useCluster(t *testing.T, c *redistest.Cluster) error {
	connect := func() redis.UniversalClient {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Username: limiterUser, Password: limiterPassword})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	admin := c.Client(t)
	if err := useAll(connect, admin); err != nil {
		return err
	}
	if n := commandStat(c.Servers[0].Client(t), "command", "rejected_calls"); n > 10 {
		return fmt.Errorf("COMMAND was refused %d times", n)
	}
	moving, err := lone(t, connect(), "moving")
	if err != nil {
		return err
	}
	if err := mustTake(moving, "k", 1, true); err != nil {
		return err
	}
	return whileItsSlotMoves(c, admin, "hybrid:{}a1:6:moving:k", func() error { return mustTake(moving, "k", 1, true) })
}

// whileItsSlotMoves does something after a key has moved, and before its slot has.
func whileItsSlotMoves(c *redistest.Cluster, admin *redis.ClusterClient, key string, do func() error) error {
	slot := int(admin.ClusterKeySlot(context.Background(), key).Val())
	owner, err := admin.MasterForKey(context.Background(), key)
	if err != nil {
		return err
	}
	from, to := c.Servers[0], c.Servers[1]
	if owner.Options().Addr != from.Addr {
		from, to = to, from
	}
	moved := make(chan error, 1)
	go func() {
		_, err := c.Reshard(from, to, []int{slot}, 500*time.Millisecond)
		moved <- err
	}()
	time.Sleep(200 * time.Millisecond)
	err = do()
	return errors.Join(err, <-moved)
}

// useRing is useAll on a ring, and goes on for longer than the client needs to take
// a shard for down.
func useRing(t *testing.T, servers []*redistest.Server) error {
	connect := func(user, password string) redis.UniversalClient {
		rdb := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": servers[0].Addr, "b": servers[1].Addr}, Username: user, Password: password})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	asUser := func() redis.UniversalClient { return connect(limiterUser, limiterPassword) }
	if err := useAll(asUser, connect("", "")); err != nil {
		return err
	}
	steady, err := lone(t, asUser(), "steady")
	for i := 0; err == nil && i < 25; i++ {
		err = mustTake(steady, strconv.Itoa(i), 1, true)
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// lone makes a limiter on a node of its own, closed when the test ends.
func lone(t *testing.T, rdb redis.UniversalClient, name string) (*hybrid.Limiter, error) {
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = node.Close() })
	return node.Limiter(name, hybrid.PerMinute(1000), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})
}

// commandStat returns what a server counts of a command.
func commandStat(admin *redis.Client, command, what string) int {
	info := admin.Info(context.Background(), "commandstats").Val()
	found := regexp.MustCompile("cmdstat_" + command + ":(?:.*,)?" + what + "=([0-9]+)").FindStringSubmatch(info)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}
