package peer

import (
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

var redisRate = Kind{
	Name: "redis_rate", Module: "github.com/go-redis/redis_rate/v10", Rule: "token bucket (GCRA)",
	Keeps: "a time per key in Redis", Place: Redis,
	Open: openRedisRate,
}

type redisRateLimiter struct {
	rdb    *redis.Client
	lim    *redis_rate.Limiter
	limit  redis_rate.Limit
	prefix string
}

func openRedisRate(s Setup) (Limiter, error) {
	rdb := newClient(s.Redis)
	return &redisRateLimiter{
		rdb: rdb, lim: redis_rate.NewLimiter(rdb), prefix: s.Prefix,
		limit: redis_rate.Limit{Rate: int(s.Limit.Count), Burst: int(s.Limit.Count), Period: s.Limit.Period},
	}, nil
}

func (l *redisRateLimiter) Allow(key string) (bool, error) {
	r, err := l.lim.Allow(background, l.prefix+key, l.limit)
	if err != nil {
		return false, err
	}
	return r.Allowed > 0, nil
}

func (l *redisRateLimiter) Close() error { return l.rdb.Close() }
