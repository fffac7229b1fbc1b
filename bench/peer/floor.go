package peer

import (
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/redis/go-redis/v9"
)

// What no limiter of its place can do without.
var (
	bareMap = Kind{
		Name: "bare xsync Load + CAS", Module: "github.com/puzpuzpuz/xsync/v3", Rule: "a count that never refills",
		Keeps: "a word per key in memory", Place: Memory, Floor: true,
		Open: func(s Setup) (Limiter, error) {
			return &counters{xsync.NewMapOf[string, *atomic.Int64](), s.Limit.Count}, nil
		},
	}
	barePing = Kind{
		Name: "bare PING", Module: "github.com/redis/go-redis/v9", Rule: "none",
		Keeps: "nothing", Place: Redis, Floor: true,
		Open: func(s Setup) (Limiter, error) { return ping{newClient(s.Redis)}, nil },
	}
)

// counters is a look-up in a map, and one compare-and-swap on the value.
type counters struct {
	keys  *xsync.MapOf[string, *atomic.Int64]
	count int64
}

func (c *counters) Allow(key string) (bool, error) {
	left, ok := c.keys.Load(key)
	if !ok {
		left, _ = c.keys.LoadOrCompute(key, c.newCounter)
	}
	for {
		n := left.Load()
		if n <= 0 {
			return false, nil
		}
		if left.CompareAndSwap(n, n-1) {
			return true, nil
		}
	}
}

func (c *counters) newCounter() *atomic.Int64 {
	n := &atomic.Int64{}
	n.Store(c.count)
	return n
}

func (c *counters) Close() error { return nil }

// ping is one round trip to Redis.
type ping struct{ rdb *redis.Client }

func (p ping) Allow(string) (bool, error) {
	err := p.rdb.Ping(background).Err()
	return err == nil, err
}

func (p ping) Close() error { return p.rdb.Close() }
