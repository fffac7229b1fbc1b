package peer

import (
	"github.com/gomodule/redigo/redis"
	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/sethvargo/go-redisstore"
)

var (
	sethvargoMemory = Kind{
		Name: "go-limiter (memory)", Module: "github.com/sethvargo/go-limiter", Rule: "fixed window from a key's first request",
		Keeps: "a bucket with its lock per key in memory", Place: Memory,
		Open: openSethvargoMemory,
	}
	sethvargoRedis = Kind{
		Name: "go-limiter (Redis)", Module: "github.com/sethvargo/go-redisstore", Rule: "fixed window from a key's first request",
		Keeps: "a hash per key in Redis", Place: Redis,
		Open: openSethvargoRedis,
	}
)

type sethvargoLimiter struct {
	store  limiter.Store
	prefix string // "" in memory
}

func openSethvargoMemory(s Setup) (Limiter, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(s.Limit.Count), Interval: s.Limit.Period})
	if err != nil {
		return nil, err
	}
	return &sethvargoLimiter{store: store}, nil
}

// openSethvargoRedis has a pool that does not ask PING of a connection before
// each use, as the default one does: that would double its round trips.
func openSethvargoRedis(s Setup) (Limiter, error) {
	store, err := redisstore.NewWithPool(
		&redisstore.Config{Tokens: uint64(s.Limit.Count), Interval: s.Limit.Period},
		&redis.Pool{
			MaxIdle: Callers, MaxActive: Callers, Wait: true,
			Dial: func() (redis.Conn, error) { return redis.Dial("tcp", s.Redis) },
		})
	if err != nil {
		return nil, err
	}
	return &sethvargoLimiter{store, s.Prefix}, nil
}

func (l *sethvargoLimiter) Allow(key string) (bool, error) {
	if l.prefix != "" {
		key = l.prefix + key
	}
	_, _, _, ok, err := l.store.Take(background, key)
	return ok, err
}

func (l *sethvargoLimiter) Close() error { return l.store.Close(background) }
