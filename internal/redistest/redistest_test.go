package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestProxyLosesReplies(t *testing.T) {
	s, ctx := Start(t), context.Background()
	p := NewProxy(t, s.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, ReadTimeout: 200 * time.Millisecond})
	defer rdb.Close()
	for _, fault := range []func(int, string){p.CutAfter, p.Swallow, p.CutBefore} {
		fault(1, "incr")
		if err := rdb.Incr(ctx, "n").Err(); err == nil {
			t.Fatal("the reply arrived")
		}
	}
	if n := rdb.Incr(ctx, "n").Val(); n != 3 || p.Hits() != 3 {
		t.Fatalf("n = %d, %d hits", n, p.Hits())
	}
	p.BlackHole(true)
	if err := rdb.Ping(ctx).Err(); err == nil {
		t.Fatal("the black hole answered")
	}
}

func TestStopAndKill(t *testing.T) {
	s, ctx := Start(t), context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ReadTimeout: 100 * time.Millisecond, DialerRetries: 1})
	defer rdb.Close()
	must(t, s.Stop())
	if err := rdb.Ping(ctx).Err(); err == nil {
		t.Fatal("a stopped server answered")
	}
	must(t, s.Continue())
	must(t, rdb.Ping(ctx).Err())
	s.Kill()
	if err := rdb.Ping(ctx).Err(); err == nil {
		t.Fatal("a killed server answered")
	}
}

func TestCluster(t *testing.T) {
	rdb := StartCluster(t, 3).Client(t)
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		must(t, rdb.Set(context.Background(), key, 1, 0).Err())
	}
}

func TestSentinel(t *testing.T) {
	s := StartSentinel(t)
	must(t, s.Client(t).Set(context.Background(), "a", 1, 0).Err())
}
