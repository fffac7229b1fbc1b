package redistest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestProxyRefusesAndTears(t *testing.T) {
	s, ctx := Start(t), context.Background()
	p := NewProxy(t, s.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Second})
	defer rdb.Close()
	must(t, rdb.Ping(ctx).Err())
	p.Refuse()
	for range 2 { // the connection that was there, then a new one
		if err := rdb.Ping(ctx).Err(); err == nil {
			t.Fatal("a port that refuses answered")
		}
	}
	must(t, p.Accept())
	p.Tear(1, "incr")
	if err := rdb.Incr(ctx, "a").Err(); err == nil {
		t.Fatal("half of a reply was one")
	}
	if got := rdb.Get(ctx, "a").Val(); got != "1" {
		t.Fatalf("a torn request was not executed: %q", got)
	}
}

func TestRestartKeepsPortAndDirectory(t *testing.T) {
	s, ctx := Start(t, "--appendonly", "yes", "--loglevel", "notice"), context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, DialerRetries: 1})
	defer rdb.Close()
	must(t, rdb.Set(ctx, "a", 1, 0).Err())
	pid := s.PID()
	s.Kill()
	must(t, s.Restart())
	if got := rdb.Get(ctx, "a").Val(); got != "1" || s.PID() == pid {
		t.Fatalf("after the restart a = %q, process %d, before it %d", got, s.PID(), pid)
	}
	if tail := s.LogTail(100); strings.Count(tail, "Ready to accept connections") != 2 {
		t.Fatalf("the log of two runs:\n%s", tail)
	}
	if tail := s.LogTail(1); strings.Contains(tail, "\n") {
		t.Fatalf("more than one line: %q", tail)
	}
}
