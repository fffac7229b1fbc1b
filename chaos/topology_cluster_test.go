package chaos

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// clusterUnderTest is a cluster of three shards.
type clusterUnderTest struct {
	*redistest.Cluster
	t   testing.TB
	rdb *redis.ClusterClient // the test's own
}

// owners is the index of the shard that owns each slot.
func (c *clusterUnderTest) owners() (owner [16384]int) {
	c.t.Helper()
	ranges, err := c.Servers[0].Client(c.t).ClusterSlots(context.Background()).Result()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range ranges {
		for i, s := range c.Servers {
			if s.Addr == r.Nodes[0].Addr {
				for slot := r.Start; slot <= r.End; slot++ {
					owner[slot] = i
				}
			}
		}
	}
	return owner
}

func (c *clusterUnderTest) slot(p hybrid.FailurePolicy, key string) int {
	return int(c.rdb.ClusterKeySlot(context.Background(), accountName(p.String(), key)).Val())
}

// Slots move with their keys, and then a primary dies with writes that its replica
// has not seen: no caller learns of it.
func TestClusterReshardingAndFailover(t *testing.T) {
	takesLong(t)
	proved(t, reshardAndFailOver)
}

func reshardAndFailOver(t testing.TB) *topologyRun {
	c := &clusterUnderTest{Cluster: redistest.StartReplicatedCluster(t, 3, keepsData...), t: t}
	c.rdb = c.Client(t)
	c.MayTakeOver(t, false, c.Replicas...) // one failover is to be judged, and not what a busy machine adds
	r := runOn(t, "cluster, slots move, a primary dies", failoverLoad(), slowly(2500), func(int) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ContextTimeoutEnabled: true})
	})
	time.Sleep(time.Second)
	from := r.now()
	keys := c.reshard()
	moved := r.now()
	asked := c.asked()
	t.Logf("%d keys were moved in %v, %d settles were sent after them with ASK", keys, (moved - from).Round(time.Millisecond), asked)
	if asked < 5 {
		t.Error("nearly nobody asked for a key whose slot was moving")
	}

	dead := c.owners()[c.slot(hybrid.FailClosed, hotKey)]
	places := c.places(dead)
	primary, replica := c.Servers[dead], c.Replicas[dead]
	redistest.Sever(t, primary, replica)
	stale := usedOn(t, replica)
	time.Sleep(lasting(1500 * time.Millisecond))
	hotUsed(t, primary, stale[accountName(hybrid.FailClosed.String(), hotKey)]+100)
	r.out.began = r.now()
	c.MayTakeOver(t, true, replica)
	primary.Kill()
	awaitPrimary(t, replica)
	r.out.ended, r.out.ready = r.now(), r.now()
	time.Sleep(3 * time.Second)
	hotUsed(t, replica, float64(r.out.limit.Burst())-10)
	time.Sleep(time.Second)
	r.collect()
	r.out.serverLog = replica.LogTail(20)
	r.leave()
	lost := lostOf(leftBy(t, primary), stale)
	r.judgeLosses(lost)
	var alive []*redistest.Server
	for i, s := range c.Servers {
		if i != dead {
			alive = append(alive, s)
		}
	}
	r.judgeBooks(usedOn(t, append(alive, replica)...), lost)
	r.judge()
	r.judgeShards(places)
	r.byRedis("before the slots moved", 0, from)
	r.byRedis("while the slots moved", from, moved)
	r.byRedis("2 s after the failover", r.out.ready+2*time.Second, r.out.stopped)
	return r
}

// reshard moves the slots of a hot key and of 20 others from one shard to another.
func (c *clusterUnderTest) reshard() (keys int) {
	c.t.Helper()
	owner, slots := c.owners(), []int{c.slot(hybrid.FailLocal, hotKey)}
	from := owner[slots[0]]
	for n := 0; len(slots) <= 20; n++ {
		if slot := c.slot(hybrid.FailClosed, warmKey(n)); owner[slot] == from {
			slots = append(slots, slot)
		}
	}
	keys, err := c.Reshard(c.Servers[from], c.Servers[(from+1)%3], slots, time.Second)
	if err != nil {
		c.t.Fatal(err)
	}
	return keys
}

// asked is how many commands came to a server for keys of slots that it did not own yet.
func (c *clusterUnderTest) asked() (n int) {
	for _, s := range c.Servers {
		n += commandStat(s.Client(c.t), "asking", "calls")
	}
	return n
}

// places says where each key of the load is, seen from a shard.
func (c *clusterUnderTest) places(dead int) map[account]place {
	owner, shared := c.owners(), make([]bool, lanes(c.t, c.rdb))
	lane := func(slot int) int { return slot * len(shared) / len(owner) }
	for slot, shard := range owner {
		shared[lane(slot)] = shared[lane(slot)] || shard == dead
	}
	return placeAll(func(p hybrid.FailurePolicy, key string) place {
		switch slot := c.slot(p, key); {
		case owner[slot] == dead:
			return failing
		case shared[lane(slot)]:
			return neighbours
		default:
			return apart
		}
	})
}

// placeAll places the keys of the load.
func placeAll(placeOf func(hybrid.FailurePolicy, string) place) map[account]place {
	places := map[account]place{}
	for _, p := range policies {
		places[account{p, hotKey}] = placeOf(p, hotKey)
		for n := range failoverLoad().warm {
			places[account{p, warmKey(n)}] = placeOf(p, warmKey(n))
		}
	}
	return places
}

// awaitPrimary waits until a replica has taken over.
func awaitPrimary(t testing.TB, replica *redistest.Server) {
	t.Helper()
	rdb := replica.Client(t)
	redistest.Eventually(t, "the replica takes over", func() bool {
		return strings.Contains(rdb.Info(context.Background(), "replication").Val(), "role:master") &&
			strings.Contains(rdb.ClusterInfo(context.Background()).Val(), "cluster_state:ok")
	})
}
