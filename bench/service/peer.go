package service

import (
	"context"
	"sync/atomic"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// perRequest is redis_rate: a script in Redis for each request, on clients like those
// of the fleet.
type perRequest struct {
	clients  []*redis.Client
	limiters []*redis_rate.Limiter
	limit    redis_rate.Limit
	asked    atomic.Uint64
}

func startPerRequest(addr string, p Plan) *perRequest {
	s := &perRequest{limit: redis_rate.Limit{Rate: int(p.Limit), Burst: int(p.Limit), Period: p.Period}}
	for range p.Nodes {
		rdb := connect(addr)
		s.clients = append(s.clients, rdb)
		s.limiters = append(s.limiters, redis_rate.NewLimiter(rdb))
	}
	return s
}

func (s *perRequest) allow(ctx context.Context, node int, key string) (answer, error) {
	s.asked.Add(1)
	r, err := s.limiters[node].Allow(ctx, key, s.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{allowed: r.Allowed > 0}, nil
}

func (s *perRequest) paths() []string { return []string{"Redis"} }
func (s *perRequest) over() float64   { return 0 }

func (s *perRequest) books() books {
	n := s.asked.Load()
	return books{operations: n, calls: n, waited: n}
}

func (s *perRequest) stop() {
	for _, c := range s.clients {
		_ = c.Close()
	}
}
