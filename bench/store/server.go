package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/bench/redisd"
	"github.com/hybridlimit/hybrid/exact"
)

// server is a Redis of its own, and the connection that asks what it did.
type server struct {
	*redisd.Server

	rdb     *redis.Client
	clients []*redis.Client
}

func startServer() (*server, error) {
	s, err := redisd.Start()
	if err != nil {
		return nil, err
	}
	return &server{Server: s, rdb: redis.NewClient(&redis.Options{Addr: s.Addr})}, nil
}

func (s *server) stop() {
	for _, c := range append(s.clients, s.rdb) {
		_ = c.Close()
	}
	s.Stop()
}

// store returns a store on a connection of its own.
func (s *server) store(hooks ...redis.Hook) (*exact.Store, error) {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	s.clients = append(s.clients, rdb)
	for _, h := range hooks {
		rdb.AddHook(h)
	}
	return exact.New(rdb, nil)
}

// spent is the time that a server has used: its process, and the scripts of settles.
type spent struct{ cpu, scripts time.Duration }

func (s *server) spent(ctx context.Context) (t spent, err error) {
	info, err := s.rdb.Info(ctx, "cpu", "commandstats").Result()
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_user", "used_cpu_sys":
			t.cpu += time.Duration(number(value) * float64(time.Second))
		case "cmdstat_evalsha":
			t.scripts += time.Duration(number(field(value, "usec")) * float64(time.Microsecond))
		}
	}
	return t, err
}

// longest returns the median, the 99th percentile and the longest of the calls since
// the last forget, in µs; zeros from a server before 7.0.
func (s *server) longest(ctx context.Context) (us [3]float64, err error) {
	info, err := s.rdb.Info(ctx, "latencystats").Result()
	for line := range strings.Lines(info) {
		if list, ok := strings.CutPrefix(strings.TrimSpace(line), "latency_percentiles_usec_evalsha:"); ok {
			us = [3]float64{number(field(list, "p50")), number(field(list, "p99")), number(field(list, "p100"))}
		}
	}
	return us, err
}

// forget makes longest begin anew.
func (s *server) forget(ctx context.Context) error {
	_ = s.rdb.ConfigSet(ctx, "latency-tracking-info-percentiles", "50 99 100").Err() // not before 7.0
	return s.rdb.ConfigResetStat(ctx).Err()
}

// memory is what the server has in use once it frees no more in the background.
func (s *server) memory(ctx context.Context) (float64, error) {
	least := 0.0
	for still := 0; still < 10; still++ {
		info, err := s.rdb.Info(ctx, "memory").Result()
		if err != nil {
			return 0, err
		}
		used := 0.0
		for line := range strings.Lines(info) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
				used = number(value)
			}
		}
		if used == 0 {
			return 0, fmt.Errorf("store: INFO tells no used_memory")
		}
		if least == 0 || used < least-1024 {
			least, still = used, 0
		}
		time.Sleep(50 * time.Millisecond)
	}
	return least, nil
}

// field finds a name in "name=value,name=value".
func field(list, name string) string {
	for part := range strings.SplitSeq(list, ",") {
		if n, v, _ := strings.Cut(part, "="); n == name {
			return v
		}
	}
	return ""
}

// number is 0 for what is none.
func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return v
}
