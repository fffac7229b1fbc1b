package service

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/bench/redisd"
)

// server is the Redis of one run, and a client that asks what it did.
type server struct {
	*redisd.Server

	rdb *redis.Client
}

func startServer() (*server, error) {
	s, err := redisd.Start()
	if err != nil {
		return nil, err
	}
	return &server{s, redis.NewClient(&redis.Options{Addr: s.Addr})}, nil
}

func (s *server) stop() {
	_ = s.rdb.Close()
	s.Stop()
}

// told is what the server says of itself.
type told struct {
	cpu       time.Duration // processor time
	scripts   uint64        // calls of scripts
	scripting time.Duration // the time that they took
	memory    int64         // bytes in use, not a difference
	version   string
}

func (t told) since(a told) told {
	t.cpu -= a.cpu
	t.scripts -= a.scripts
	t.scripting -= a.scripting
	return t
}

// ask reads the server's INFO.
func (s *server) ask(ctx context.Context) (told, error) {
	info, err := s.rdb.Info(ctx, "everything").Result()
	return readInfo(info), err
}

// readInfo reads the lines of INFO that matter. What is not told is 0.
func readInfo(info string) (t told) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_user", "used_cpu_sys":
			t.cpu += time.Duration(number(value) * float64(time.Second))
		case "used_memory":
			t.memory = int64(number(value))
		case "redis_version":
			t.version = value
		case "cmdstat_evalsha", "cmdstat_eval":
			t.scripts += uint64(number(field(value, "calls")))
			t.scripting += time.Duration(number(field(value, "usec")) * float64(time.Microsecond))
		}
	}
	return t
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

func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}
