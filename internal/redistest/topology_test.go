package redistest

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What is written while the replication is severed is lost with the primary.
func TestSentinelsFailOverToAStaleReplica(t *testing.T) {
	s, ctx := StartSentinels(t, 2, 3), context.Background()
	rdb := s.Client(t)
	must(t, rdb.Set(ctx, "kept", 1, 0).Err())
	for _, r := range s.Replicas {
		replica := r.Client(t)
		Eventually(t, "the write is replicated", func() bool { return replica.Get(ctx, "kept").Val() == "1" })
	}
	Sever(t, s.Primary, s.Replicas...)
	must(t, rdb.Set(ctx, "lost", 1, 0).Err())
	s.Primary.Kill()
	Eventually(t, "a replica has taken over", func() bool {
		at, err := s.Current()
		return err == nil && at != s.Primary.Addr && rdb.Set(ctx, "new", 1, 0).Err() == nil
	})
	if kept, lost := rdb.Exists(ctx, "kept").Val(), rdb.Exists(ctx, "lost").Val(); kept != 1 || lost != 0 {
		t.Fatalf("of what was replicated %d are there, of what was not %d", kept, lost)
	}
}

func TestClusterFailsOverAndReshards(t *testing.T) {
	c, ctx := StartReplicatedCluster(t, 3), context.Background()
	rdb := c.Client(t)
	for _, key := range []string{"{a}1", "{a}2", "{a}3"} {
		must(t, rdb.Set(ctx, key, 1, 0).Err())
	}
	slot := int(rdb.ClusterKeySlot(ctx, "{a}1").Val()) // 15495: the third primary's
	keys, err := c.Reshard(c.Servers[2], c.Servers[0], []int{slot}, time.Millisecond)
	if err != nil || keys != 3 || c.Servers[0].Client(t).DBSize(ctx).Val() != 3 {
		t.Fatal(keys, err)
	}
	Sever(t, c.Servers[0], c.Replicas[0])
	must(t, rdb.Set(ctx, "{a}lost", 1, 0).Err())
	c.Servers[0].Kill()
	Eventually(t, "the replica has taken over", func() bool {
		rdb.ReloadState(ctx) // by itself the client looks once a minute
		return rdb.Set(ctx, "{a}1", 2, 0).Err() == nil
	})
	if n := rdb.Exists(ctx, "{a}lost").Val(); n != 0 {
		t.Fatal("the replica was not stale")
	}
}

func TestTLSWantsACertificate(t *testing.T) {
	s, config := StartTLS(t)
	ctx := context.Background()
	for want, c := range map[bool]*tls.Config{true: config, false: {RootCAs: config.RootCAs, ServerName: config.ServerName}} {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, TLSConfig: c, MaxRetries: -1, DialerRetries: 1})
		if err := rdb.Ping(ctx).Err(); (err == nil) != want {
			t.Errorf("with a certificate %t: %v", want, err)
		}
		_ = rdb.Close()
	}
	if err := s.Client(t).Ping(ctx).Err(); err == nil {
		t.Error("it answered without TLS")
	}
}

func TestUsersMayDoWhatTheyMay(t *testing.T) {
	s, ctx := Start(t), context.Background()
	s.SetUser(t, "reader", "secret", "+get", "~a*")
	rdb := s.UserClient(t, "reader", "secret")
	if err := rdb.Get(ctx, "a1").Err(); err != redis.Nil {
		t.Error(err)
	}
	for _, err := range []error{rdb.Get(ctx, "b").Err(), rdb.Set(ctx, "a1", 1, 0).Err()} {
		if !redis.HasErrorPrefix(err, "NOPERM") {
			t.Error(err)
		}
	}
}
