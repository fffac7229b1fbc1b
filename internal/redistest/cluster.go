package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slots is how many hash slots a cluster has.
const slots = 16384

// Cluster is a Redis Cluster of primaries without replicas.
type Cluster struct {
	Servers []*Server
}

// StartCluster starts a cluster of that many primaries, which share the slots evenly.
func StartCluster(t testing.TB, primaries int) *Cluster {
	t.Helper()
	ctx, c := context.Background(), &Cluster{}
	for i := range primaries {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no")
		rdb := s.Client(t)
		must(t, rdb.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		must(t, rdb.ClusterAddSlotsRange(ctx, i*slots/primaries, (i+1)*slots/primaries-1).Err())
		c.Servers = append(c.Servers, s)
	}
	first := c.Servers[0].Client(t)
	for _, s := range c.Servers[1:] {
		host, port := hostPort(s.Addr)
		must(t, first.ClusterMeet(ctx, host, port).Err())
	}
	for _, s := range c.Servers {
		rdb := s.Client(t)
		Eventually(t, "the cluster is formed", func() bool {
			info := rdb.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(slots)) &&
				strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(primaries))
		})
	}
	return c
}

// Addrs returns the addresses of all servers.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		addrs[i] = s.Addr
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
