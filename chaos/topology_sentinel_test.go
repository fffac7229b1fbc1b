package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// failoverLoad saturates one key per limiter and asks for 300 others far below their limits.
func failoverLoad() load {
	return load{rate: 2400, workers: 12, hot: 0.7, fresh: 0.02, warm: 300, seed: *seedFlag}
}

// A primary dies with writes that no replica has seen: what they had granted may be
// admitted once more, and no more than that.
func TestSentinelFailover(t *testing.T) {
	for name, away := range map[string]func(*redistest.Server) error{
		"killed": func(s *redistest.Server) error { s.Kill(); return nil },
		"frozen": func(s *redistest.Server) error { return s.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			if name != "killed" {
				takesLong(t)
			}
			proved(t, func(t testing.TB) *topologyRun { return failOver(t, name, away) })
		})
	}
}

func failOver(t testing.TB, name string, away func(*redistest.Server) error) *topologyRun {
	s := redistest.StartSentinels(t, 2, 3, keepsData...)
	r := runOn(t, "sentinel, primary "+name, failoverLoad(), slowly(2500), func(int) redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Master, SentinelAddrs: s.Addrs(), ContextTimeoutEnabled: true})
	})
	stale := severed(t, s)
	r.out.began = r.now()
	s.DownAfter(t, downAfter)
	if err := away(s.Primary); err != nil {
		t.Fatal(err)
	}
	next := promoted(t, s)
	r.judgeFailover(s.Primary, next, stale[next.Addr])
	return r
}

// severed ends the replication after a while, and returns what each replica knows
// after another.
func severed(t testing.TB, s *redistest.Sentinel) (stale map[string]usage) {
	t.Helper()
	s.DownAfter(t, time.Minute) // one failover is to be judged, and not what a busy machine adds
	time.Sleep(1500 * time.Millisecond)
	redistest.Sever(t, s.Primary, s.Replicas...)
	stale = map[string]usage{}
	for _, replica := range s.Replicas {
		stale[replica.Addr] = usedOn(t, replica)
	}
	time.Sleep(lasting(1500 * time.Millisecond))
	hotUsed(t, s.Primary, stale[s.Replicas[0].Addr][accountName(hybrid.FailClosed.String(), hotKey)]+100)
	return stale
}

// judgeFailover lets the load go on for a while with the new primary and judges the
// run. The old one is killed now, if it lives.
func (r *topologyRun) judgeFailover(old, next *redistest.Server, stale usage) {
	r.t.Helper()
	r.out.ended, r.out.ready = r.now(), r.now()
	time.Sleep(3 * time.Second)
	hotUsed(r.t, next, float64(r.out.limit.Burst())-10)
	time.Sleep(time.Second)
	r.collect()
	r.out.serverLog = next.LogTail(20)
	r.leave()
	lost := lostOf(leftBy(r.t, old), stale)
	r.judgeLosses(lost)
	r.judgeBooks(usedOn(r.t, next), lost)
	r.judge()
	r.byRedis("before the failover", 0, r.out.began)
	r.byRedis("2 s after it", r.out.ready+2*time.Second, r.out.stopped)
}

// downAfter is the silence after which the sentinels replace a primary.
const downAfter = 500 * time.Millisecond

// promoted waits until the sentinels name a new primary that takes writes.
func promoted(t testing.TB, s *redistest.Sentinel) (next *redistest.Server) {
	t.Helper()
	defer s.DownAfter(t, time.Minute)
	redistest.Eventually(t, "a replica takes over", func() bool {
		at, err := s.Current()
		if err != nil {
			return false
		}
		for _, replica := range s.Replicas {
			if replica.Addr == at && replica.Client(t).Set(context.Background(), "probe", 1, 0).Err() == nil {
				next = replica
				return true
			}
		}
		return false
	})
	return next
}
