package peer

import (
	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

const ululeModule = "github.com/ulule/limiter/v3"

var (
	ululeMemory = Kind{
		Name: "ulule (memory)", Module: ululeModule, Rule: "fixed window from a key's first request",
		Keeps: "a count and a time per key in memory", Place: Memory,
		Open: openUluleMemory,
	}
	ululeRedis = Kind{
		Name: "ulule (Redis)", Module: ululeModule, Rule: "fixed window from a key's first request",
		Keeps: "a count per key in Redis", Place: Redis,
		Open: openUluleRedis,
	}
)

type ululeLimiter struct {
	lim *limiter.Limiter
	rdb *redis.Client // nil in memory
}

func openUluleMemory(s Setup) (Limiter, error) {
	store := memory.NewStoreWithOptions(limiter.StoreOptions{
		Prefix: s.Prefix, CleanUpInterval: limiter.DefaultCleanUpInterval,
	})
	return &ululeLimiter{lim: limiter.New(store, s.Limit.ulule())}, nil
}

func openUluleRedis(s Setup) (Limiter, error) {
	rdb := newClient(s.Redis)
	store, err := ululeredis.NewStoreWithOptions(rdb, limiter.StoreOptions{Prefix: s.Prefix})
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return &ululeLimiter{limiter.New(store, s.Limit.ulule()), rdb}, nil
}

func (l Limit) ulule() limiter.Rate { return limiter.Rate{Limit: l.Count, Period: l.Period} }

func (l *ululeLimiter) Allow(key string) (bool, error) {
	c, err := l.lim.Get(background, key)
	return !c.Reached && err == nil, err
}

func (l *ululeLimiter) Close() error {
	if l.rdb == nil {
		return nil
	}
	return l.rdb.Close()
}
