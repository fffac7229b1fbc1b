package peer

import (
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

var goZero = Kind{
	Name: "go-zero tokenlimit", Module: "github.com/zeromicro/go-zero", Rule: "token bucket in whole seconds and tokens a second",
	Keeps: "two keys per key in Redis, a limiter of its own for outages in memory", Place: Redis,
	Open: openGoZero,
}

// goZeroLimiter has a limiter per key: theirs knows one key.
type goZeroLimiter struct {
	keys  *xsync.MapOf[string, *limit.TokenLimiter]
	setup Setup
	store *redis.Redis
}

// Importing it is enough for a line about the process per minute.
func init() { logx.Disable() }

func openGoZero(s Setup) (Limiter, error) {
	store, err := redis.NewRedis(redis.RedisConf{Host: s.Redis, Type: redis.NodeType})
	if err != nil {
		return nil, err
	}
	return &goZeroLimiter{xsync.NewMapOf[string, *limit.TokenLimiter](), s, store}, nil
}

func (l *goZeroLimiter) Allow(key string) (bool, error) {
	lim, ok := l.keys.Load(key)
	if !ok {
		lim, _ = l.keys.LoadOrCompute(key, func() *limit.TokenLimiter { return l.newLimiter(key) })
	}
	return lim.Allow(), nil
}

// newLimiter rounds the rate down: theirs is in whole tokens a second.
func (l *goZeroLimiter) newLimiter(key string) *limit.TokenLimiter {
	rate := int64(float64(l.setup.Limit.Count) / (float64(l.setup.Limit.Period) / float64(time.Second)))
	return limit.NewTokenLimiter(max(int(rate), 1), int(l.setup.Limit.Count), l.store, l.setup.Prefix+key)
}

// Close leaves the connections: theirs are shared by all that use the address.
func (l *goZeroLimiter) Close() error { return nil }
