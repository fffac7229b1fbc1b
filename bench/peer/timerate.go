package peer

import (
	"github.com/puzpuzpuz/xsync/v3"
	"golang.org/x/time/rate"
)

const timeModule = "golang.org/x/time"

var (
	timeRate = Kind{
		Name: "x/time/rate", Module: timeModule, Rule: "token bucket",
		Keeps: "one bucket in memory, no keys", Place: Memory | OneKey, Busy: 1,
		Open: func(s Setup) (Limiter, error) { return oneRate{s.Limit.timeRate()}, nil },
	}
	timeRateMap = Kind{
		Name: "x/time/rate in an xsync map", Module: timeModule, Rule: "token bucket",
		Keeps: "a bucket with its lock per key in memory", Place: Memory,
		Open: func(s Setup) (Limiter, error) {
			return &rates{xsync.NewMapOf[string, *rate.Limiter](), s.Limit}, nil
		},
	}
)

func (l Limit) timeRate() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(l.Count)/l.Period.Seconds()), int(l.Count))
}

type oneRate struct{ lim *rate.Limiter }

func (r oneRate) Allow(string) (bool, error) { return r.lim.Allow(), nil }
func (r oneRate) Close() error               { return nil }

type rates struct {
	keys  *xsync.MapOf[string, *rate.Limiter]
	limit Limit
}

func (r *rates) Allow(key string) (bool, error) {
	lim, ok := r.keys.Load(key)
	if !ok {
		lim, _ = r.keys.LoadOrCompute(key, r.limit.timeRate)
	}
	return lim.Allow(), nil
}

func (r *rates) Close() error { return nil }
