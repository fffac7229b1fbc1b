package exact

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

func TestLanesOfAClusterAreItsSlots(t *testing.T) {
	rdb, ctx := redistest.StartCluster(t, 3).Client(t), context.Background()
	s := newStore(t, rdb)
	met := map[int]bool{}
	for i := range 300 {
		account := s.Account("api", CellKey(fmt.Sprint("{a}\x00\xff}", i)))
		slot := rdb.ClusterKeySlot(ctx, account).Val()
		if got := s.Lane(account); got != int(slot)*clusterLanes/clusterSlots {
			t.Fatalf("%q is in slot %d, and in lane %d", account, slot, got)
		}
		met[s.Lane(account)] = true
	}
	if len(met) != s.Lanes() {
		t.Errorf("300 accounts are in %d of %d lanes", len(met), s.Lanes())
	}
	for lane := range s.Lanes() {
		if got := s.Lane(s.lanes.probes[lane]); got != lane {
			t.Errorf("the probe of lane %d is in lane %d", lane, got)
		}
		if err := s.Probe(ctx, lane); err != nil {
			t.Errorf("lane %d: %v", lane, err)
		}
	}
}

func TestLanesOfARingAreItsShards(t *testing.T) {
	a, b, ctx := redistest.Start(t), redistest.Start(t), context.Background()
	rdb := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Addr, "b": b.Addr}, HeartbeatFrequency: 50 * time.Millisecond, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newStore(t, rdb)
	if s.Lanes() != 2 {
		t.Fatalf("%d lanes of two shards", s.Lanes())
	}
	mustRun(t, s, ones(s, 100, "k"))
	for _, server := range []*redistest.Server{a, b} {
		lane, in := s.lanes.byAddr[server.Addr], 0
		for i := range 100 {
			if s.Lane(s.Account("api", fmt.Sprint("k", i))) == lane {
				in++
			}
		}
		if n := server.Client(t).DBSize(ctx).Val(); int(n) != in || in == 0 {
			t.Errorf("%d accounts are in lane %d, and %d on its shard", in, lane, n)
		}
		if err := s.Probe(ctx, lane); err != nil {
			t.Errorf("lane %d: %v", lane, err)
		}
	}
	b.Kill()
	left := s.lanes.byAddr[a.Addr]
	redistest.Eventually(t, "the lane of the dead shard has no accounts, and no probe reaches it", func() bool {
		for i := range 100 {
			if s.Lane(s.Account("api", fmt.Sprint("k", i))) != left {
				return false
			}
		}
		return s.Probe(ctx, 1-left) != nil
	})
	if err := s.Probe(ctx, left); err != nil {
		t.Errorf("the shard that is left: %v", err)
	}
}

// The same server twice is how a Ring is weighted, and shards may come later.
func TestLanesOfOddRings(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	rdb := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"1": a.Addr, "2": b.Addr, "3": a.Addr}})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newStore(t, rdb)
	met := map[int]bool{}
	look := func() {
		for i := range 100 {
			lane := s.Lane(s.Account("api", fmt.Sprint("k", i)))
			if lane < 0 || lane >= s.Lanes() {
				t.Fatalf("lane %d of %d", lane, s.Lanes())
			}
			met[lane] = true
		}
	}
	if look(); s.Lanes() != 2 || len(met) != 2 {
		t.Errorf("%d lanes of two servers, %d met", s.Lanes(), len(met))
	}
	rdb.SetAddrs(map[string]string{"1": a.Addr, "4": redistest.Start(t).Addr})
	look()
	mustRun(t, s, ones(s, 100, "k"))
	none := newStore(t, redis.NewRing(&redis.RingOptions{}))
	if none.Lanes() != 1 || none.Lane("any") != 0 {
		t.Errorf("a Ring without shards: %d lanes", none.Lanes())
	}
}

// A probe finds what a PING would not: a server that answers, and takes no writes.
func TestProbesWrite(t *testing.T) {
	server, ctx := redistest.Start(t), context.Background()
	s, admin := newStore(t, server.Client(t)), server.Client(t)
	if s.Lanes() != 1 || s.Lane("any") != 0 {
		t.Errorf("%d lanes of one server, any in %d", s.Lanes(), s.Lane("any"))
	}
	if err := s.Probe(ctx, 0); err != nil {
		t.Error(err)
	}
	if err := admin.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(ctx, 0); !redis.HasErrorPrefix(err, "OOM") {
		t.Errorf("on a full server: %v", err)
	}
}
