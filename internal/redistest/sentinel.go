package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinel is a primary with replicas, watched by sentinels that fail over half a
// second after the primary has gone.
type Sentinel struct {
	Master    string // the name by which the sentinels know the primary
	Primary   *Server
	Replicas  []*Server
	Sentinels []*Server
}

// StartSentinel starts a primary, a replica and a sentinel, and waits until they
// know each other.
func StartSentinel(t testing.TB) *Sentinel { return StartSentinels(t, 1, 1) }

// StartSentinels starts a primary with that many replicas and that many sentinels,
// of which a majority decides, and waits until all know each other. The primary
// gets the extra arguments.
func StartSentinels(t testing.TB, replicas, sentinels int, args ...string) *Sentinel {
	t.Helper()
	need(t, "redis-sentinel")
	s := &Sentinel{Master: "main", Primary: Start(t, args...)}
	for range replicas {
		s.Replicas = append(s.Replicas, StartReplica(t, s.Primary))
	}
	for range sentinels {
		s.Sentinels = append(s.Sentinels, s.watch(t, sentinels/2+1))
	}
	for _, one := range s.Sentinels {
		rdb := redis.NewSentinelClient(&redis.Options{Addr: one.Addr})
		t.Cleanup(func() { _ = rdb.Close() })
		Eventually(t, "a sentinel knows all", func() bool {
			m := rdb.Master(context.Background(), s.Master).Val()
			return m["num-slaves"] == strconv.Itoa(replicas) && m["num-other-sentinels"] == strconv.Itoa(sentinels-1)
		})
	}
	return s
}

// watch starts one sentinel.
func (s *Sentinel) watch(t testing.TB, quorum int) *Server {
	t.Helper()
	host, port := hostPort(s.Primary.Addr)
	for range 10 {
		own := freePort(t)
		conf := filepath.Join(t.TempDir(), "sentinel.conf")
		must(t, os.WriteFile(conf, fmt.Appendf(nil,
			"port %d\nbind 127.0.0.1\nsentinel monitor %s %s %s %d\nsentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 3000\n",
			own, s.Master, host, port, quorum, s.Master, s.Master), 0o600))
		one := launch(t, "redis-sentinel", own, conf)
		if one.answers() {
			return one
		}
		one.Kill() // most likely somebody else took the port
	}
	t.Fatal("redistest: redis-sentinel does not start")
	return nil
}

// Current is the address of the primary, as the sentinels see it.
func (s *Sentinel) Current() (string, error) {
	rdb := redis.NewSentinelClient(&redis.Options{Addr: s.Sentinels[0].Addr})
	defer rdb.Close()
	at, err := rdb.GetMasterAddrByName(context.Background(), s.Master).Result()
	if err != nil || len(at) != 2 {
		return "", fmt.Errorf("redistest: the sentinel names no primary: %v, %w", at, err)
	}
	return at[0] + ":" + at[1], nil
}

// DownAfter sets how long the primary must have been silent for the sentinels to
// replace it. On a busy machine half a second of silence need not mean anything.
func (s *Sentinel) DownAfter(t testing.TB, silence time.Duration) {
	t.Helper()
	for _, one := range s.Sentinels {
		must(t, one.Client(t).Do(context.Background(), "sentinel", "set", s.Master, "down-after-milliseconds", silence.Milliseconds()).Err())
	}
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() []string {
	addrs := make([]string, len(s.Sentinels))
	for i, one := range s.Sentinels {
		addrs[i] = one.Addr
	}
	return addrs
}

// Client returns a failover client with default options, closed when the test ends.
func (s *Sentinel) Client(t testing.TB) *redis.Client {
	t.Helper()
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Master, SentinelAddrs: s.Addrs()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
