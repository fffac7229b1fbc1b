package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Sentinel is a primary with one replica, watched by one sentinel that fails
// over half a second after the primary has gone.
type Sentinel struct {
	Master           string // the name by which the sentinel knows the primary
	Primary, Replica *Server
	Sentinel         *Server
}

// StartSentinel starts the three processes and waits until they know each other.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	need(t, "redis-sentinel")
	s := &Sentinel{Master: "main", Primary: Start(t)}
	s.Replica = StartReplica(t, s.Primary)
	host, port := hostPort(s.Primary.Addr)
	own := freePort(t)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	must(t, os.WriteFile(conf, fmt.Appendf(nil,
		"port %d\nbind 127.0.0.1\nsentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 3000\n",
		own, s.Master, host, port, s.Master, s.Master), 0o600))
	s.Sentinel = launch(t, "redis-sentinel", own, conf)
	rdb := redis.NewSentinelClient(&redis.Options{Addr: s.Sentinel.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	Eventually(t, "the sentinel knows the replica", func() bool {
		m := rdb.Master(context.Background(), s.Master).Val()
		n, _ := strconv.Atoi(m["num-slaves"])
		return n == 1
	})
	return s
}

// StartReplica starts a server that replicates primary, and waits until it is in sync.
func StartReplica(t testing.TB, primary *Server) *Server {
	t.Helper()
	host, port := hostPort(primary.Addr)
	r := Start(t, "--replicaof", host, port)
	rdb := r.Client(t)
	Eventually(t, "the replica is in sync", func() bool {
		return strings.Contains(rdb.Info(context.Background(), "replication").Val(), "master_link_status:up")
	})
	return r
}

// Client returns a failover client with default options, closed when the test ends.
func (s *Sentinel) Client(t testing.TB) *redis.Client {
	t.Helper()
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Master, SentinelAddrs: []string{s.Sentinel.Addr}})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
