package redisd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func startServer(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("HYBRID_REQUIRE_REDIS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// What a script executes is counted too; a pipeline is one round trip.
func TestUsageCountsCommandsAndRoundTrips(t *testing.T) {
	s, ctx := startServer(t), t.Context()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer rdb.Close()
	fivePings := func(p redis.Pipeliner) error {
		for range 5 {
			p.Ping(ctx)
		}
		return nil
	}
	script := func() error {
		return rdb.Eval(ctx, "redis.call('SET', KEYS[1], 1) redis.call('DEL', KEYS[1]) return 1", []string{"k"}).Err()
	}
	both := func() {
		if _, err := rdb.Pipelined(ctx, fivePings); err != nil {
			t.Fatal(err)
		}
		if err := script(); err != nil {
			t.Fatal(err)
		}
	}
	both() // makes the connections, which have something to say of their own
	before, err := s.Usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	both()
	after, err := s.Usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := after.Since(before)
	if got.Commands != 3+5 || got.Reads != 2 {
		t.Errorf("got %d commands in %d reads, want 8 in 2", got.Commands, got.Reads)
	}
	if got.CPU < 0 || after.CPU <= 0 {
		t.Errorf("CPU: %v since, %v in all", got.CPU, after.CPU)
	}
	if v := s.Version(ctx); v == "unknown" {
		t.Error("the server does not say its version")
	}
}

// Replies are late by the delay, and do not wait for one another.
func TestDistanceDelaysEachReplyAlike(t *testing.T) {
	const delay, calls = 50 * time.Millisecond, 20
	s := startServer(t)
	d, err := NewDistance(s.Addr, delay)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rdb := redis.NewClient(&redis.Options{Addr: d.Addr, PoolSize: calls, MaxRetries: -1})
	defer rdb.Close()
	begin := time.Now()
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if err := rdb.Ping(context.Background()).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// A new connection says a few things before its first command.
	if took := time.Since(begin); took < delay || took > calls*delay/2 {
		t.Errorf("%d calls at once took %v, each is %v late", calls, took, delay)
	}
}

func TestDistanceEndsItsConnections(t *testing.T) {
	s := startServer(t)
	d, err := NewDistance(s.Addr, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: d.Addr, MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Error("a closed way still leads to the server")
	}
}

func TestStoppedServerIsGone(t *testing.T) {
	s := startServer(t)
	s.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Error("it still answers")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}
