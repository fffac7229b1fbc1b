package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slots is how many hash slots a cluster has.
const slots = 16384

// Cluster is a Redis Cluster whose primaries share the slots evenly.
type Cluster struct {
	Servers  []*Server // the primaries, as started
	Replicas []*Server // Replicas[i] replicates Servers[i]; empty without replicas
}

// StartCluster starts a cluster of that many primaries, without replicas.
func StartCluster(t testing.TB, primaries int) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range primaries {
		c.Servers = append(c.Servers, startClusterNode(t, 2000))
	}
	c.form(t)
	return c
}

// StartReplicatedCluster starts a cluster of that many primaries with a replica
// each, which takes over some two seconds after its primary has gone, however far
// behind it is. All servers get the extra arguments.
func StartReplicatedCluster(t testing.TB, primaries int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range primaries {
		c.Servers = append(c.Servers, startClusterNode(t, 1000, args...))
		c.Replicas = append(c.Replicas, startClusterNode(t, 1000, args...))
	}
	c.form(t)
	c.replicate(t)
	return c
}

// startClusterNode starts a node that is called down when it has been silent for that long.
func startClusterNode(t testing.TB, timeoutMillis int, args ...string) *Server {
	t.Helper()
	return Start(t, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", fmt.Sprint(timeoutMillis),
		"--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0",
		"--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0"}, args...)...)
}

// form shares the slots among the primaries and makes all nodes know each other.
func (c *Cluster) form(t testing.TB) {
	t.Helper()
	ctx, primaries := context.Background(), len(c.Servers)
	all := append(append([]*Server{}, c.Servers...), c.Replicas...)
	for i, s := range all {
		rdb := s.Client(t)
		must(t, rdb.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		if i < primaries {
			must(t, rdb.ClusterAddSlotsRange(ctx, i*slots/primaries, (i+1)*slots/primaries-1).Err())
		}
	}
	first := all[0].Client(t)
	for _, s := range all[1:] {
		host, port := hostPort(s.Addr)
		must(t, first.ClusterMeet(ctx, host, port).Err())
	}
	for _, s := range all {
		rdb := s.Client(t)
		Eventually(t, "the cluster is formed", func() bool {
			info := rdb.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_slots_ok:", slots)) &&
				strings.Contains(info, fmt.Sprint("cluster_known_nodes:", len(all)))
		})
	}
}

// replicate gives each primary its replica, and waits until all know and all are in sync.
func (c *Cluster) replicate(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	for i, r := range c.Replicas {
		id := c.Servers[i].Client(t).ClusterMyID(ctx).Val()
		must(t, r.Client(t).ClusterReplicate(ctx, id).Err())
	}
	for i, r := range c.Replicas {
		waitForLink(t, r)
		primary := c.Servers[i].Client(t)
		Eventually(t, "a replica's primary may be failed over", func() bool {
			return strings.Contains(primary.ClusterNodes(ctx).Val(), "slave "+primary.ClusterMyID(ctx).Val())
		})
	}
	for _, s := range append(append([]*Server{}, c.Servers...), c.Replicas...) {
		rdb := s.Client(t)
		Eventually(t, "all nodes know all replicas", func() bool {
			return strings.Count(rdb.ClusterNodes(ctx).Val(), "slave ") == len(c.Replicas)
		})
	}
}

// MayTakeOver sets whether a replica replaces its primary when that is silent. On a
// busy machine a second of silence need not mean anything.
func (c *Cluster) MayTakeOver(t testing.TB, may bool, replicas ...*Server) {
	t.Helper()
	for _, r := range replicas {
		must(t, r.Client(t).ConfigSet(context.Background(), "cluster-replica-no-failover", map[bool]string{true: "no", false: "yes"}[may]).Err())
	}
}

// Addrs returns the addresses of all servers.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, s := range append(append([]*Server{}, c.Servers...), c.Replicas...) {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

// Client returns a cluster client with default options, closed when the test ends.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
