package peer

import (
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
)

const throttledModule = "github.com/throttled/throttled/v2"

var (
	throttledMemory = Kind{
		Name: "throttled (memory)", Module: throttledModule, Rule: "token bucket (GCRA)",
		Keeps: "a time per key in memory", Place: Memory,
		Open: openThrottledMemory,
	}
	throttledRedis = Kind{
		Name: "throttled (Redis)", Module: throttledModule, Rule: "token bucket (GCRA)",
		Keeps: "a time per key in Redis", Place: Redis,
		Open: openThrottledRedis,
	}
)

type throttledLimiter struct {
	lim *throttled.GCRARateLimiterCtx
	rdb *redis.Client // nil in memory
}

// openThrottledMemory sets no bound on the keys: with one, every look-up takes a
// lock that orders them by use.
func openThrottledMemory(s Setup) (Limiter, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	return newThrottled(store, nil, s.Limit)
}

func openThrottledRedis(s Setup) (Limiter, error) {
	rdb := newClient(s.Redis)
	store, err := goredisstore.NewCtx(rdb, s.Prefix)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return newThrottled(store, rdb, s.Limit)
}

func newThrottled(store throttled.GCRAStoreCtx, rdb *redis.Client, l Limit) (Limiter, error) {
	lim, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(int(l.Count), l.Period),
		MaxBurst: int(l.Count) - 1, // beside the first
	})
	if err != nil {
		return nil, err
	}
	return &throttledLimiter{lim, rdb}, nil
}

// Allow fails when other callers of the same key were faster ten times in a row.
func (l *throttledLimiter) Allow(key string) (bool, error) {
	limited, _, err := l.lim.RateLimitCtx(background, key, 1)
	return !limited && err == nil, err
}

func (l *throttledLimiter) Close() error {
	if l.rdb == nil {
		return nil
	}
	return l.rdb.Close()
}
