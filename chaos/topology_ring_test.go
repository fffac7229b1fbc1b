package chaos

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// ringUnderTest is a ring of two shards.
type ringUnderTest struct {
	servers [2]*redistest.Server
	rdb     *redis.Ring // the test's own
}

func startRing(t testing.TB) *ringUnderTest {
	r := &ringUnderTest{servers: [2]*redistest.Server{redistest.Start(t, keepsData...), redistest.Start(t, keepsData...)}}
	r.rdb = r.connect()
	t.Cleanup(func() { _ = r.rdb.Close() })
	return r
}

func (r *ringUnderTest) connect() *redis.Ring {
	return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": r.servers[0].Addr, "b": r.servers[1].Addr}, ContextTimeoutEnabled: true})
}

// shard is the index of the shard that a key is on, while both are up.
func (r *ringUnderTest) shard(t testing.TB, p hybrid.FailurePolicy, key string) int {
	t.Helper()
	shard, err := r.rdb.GetShardClientForKey(accountName(p.String(), key))
	if err != nil {
		t.Fatal(err)
	}
	if shard.Options().Addr == r.servers[0].Addr {
		return 0
	}
	return 1
}

// places says where each key of the load is, seen from a shard.
func (r *ringUnderTest) places(t testing.TB, dead int) map[account]place {
	return placeAll(func(p hybrid.FailurePolicy, key string) place {
		if r.shard(t, p, key) == dead {
			return failing
		}
		return apart
	})
}

// A shard goes and comes back with its data. Its keys move to the other one, where they
// have a full account, and back: at most one burst more per move.
func TestRingShardDownAndUp(t *testing.T) {
	takesLong(t)
	proved(t, func(t testing.TB) *topologyRun {
		return shardAway(t, "ring, a shard is refused and comes back", 3500*time.Millisecond, 2, func(r *topologyRun, ring *ringUnderTest, server *redistest.Server) {
			server.Kill()
			redistest.Eventually(t, "the ring moves the keys", func() bool { return ring.rdb.Len() == 1 })
			t.Logf("the ring moved the keys after %v", r.now()-r.out.began)
			time.Sleep(4 * time.Second)
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
			redistest.Eventually(t, "the ring moves them back", func() bool { return ring.rdb.Len() == 2 })
		})
	})
}

// A frozen shard accepts and does not answer: the ring notices after many seconds, so
// that nothing moves in this test.
func TestRingShardFrozen(t *testing.T) {
	takesLong(t)
	proved(t, func(t testing.TB) *topologyRun {
		return shardAway(t, "ring, a shard is frozen", 2*time.Second, 0, func(_ *topologyRun, _ *ringUnderTest, server *redistest.Server) {
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lasting(3 * time.Second))
			if err := server.Continue(); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// shardAway runs a fleet on a ring whose shard with a hot key goes away after a calm
// and comes back, which moves its keys so many times.
func shardAway(t testing.TB, name string, calm time.Duration, moves int, away func(*topologyRun, *ringUnderTest, *redistest.Server)) *topologyRun {
	ring := startRing(t)
	dead := ring.shard(t, hybrid.FailClosed, hotKey)
	server, places := ring.servers[dead], ring.places(t, dead)
	r := runOn(t, name, failoverLoad(), slowly(1000), func(int) redis.UniversalClient { return ring.connect() })
	time.Sleep(lasting(calm))
	r.out.began = r.now()
	away(r, ring, server)
	r.out.ended, r.out.ready = r.now(), r.now()
	time.Sleep(4 * time.Second)
	r.collect()
	r.out.serverLog = server.LogTail(20)
	r.judge()
	r.judgeShards(places)
	r.judgeMoves(moves, places)
	r.byRedis("before", 0, r.out.began)
	r.byRedis("2 s after the shard is back", r.out.ready+2*time.Second, r.out.stopped)
	return r
}

// judgeMoves holds each account against its limit and one burst per move, and keys
// of the shard that stayed against their limit alone. FailLocal may admit one limit more.
func (r *topologyRun) judgeMoves(moves int, places map[account]place) {
	r.t.Helper()
	covered, all := r.out.admissions()
	for acc, list := range covered {
		bursts := moves
		if places[acc] == apart {
			bursts = 0
		}
		if err := r.out.promised(0, bursts, 0).Check(list).Err(); err != nil {
			r.t.Errorf("%v, %s: %v", acc.policy, acc.key, err)
		}
		if err := r.out.promised(0, bursts+1, 0).Check(all[acc]).Err(); err != nil && acc.policy == hybrid.FailLocal {
			r.t.Errorf("%v, %s, with what the policy admitted: %v", acc.policy, acc.key, err)
		}
		if acc.key == hotKey {
			r.t.Logf("%v, the hot key: %d admitted, %.2f bursts beyond the limit", acc.policy, len(list), float64(len(list))/float64(r.out.limit.Burst())-1)
		}
	}
}
