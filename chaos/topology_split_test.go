package chaos

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// gate is a node's way to the sentinels, which can be closed.
type gate struct {
	sentinels []string

	mu     sync.Mutex
	closed bool
	conns  []net.Conn // to sentinels
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("no route")}
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err == nil && slices.Contains(g.sentinels, addr) {
		g.conns = append(g.conns, conn)
	}
	return conn, err
}

// set closes the gate and what has passed it, or opens it.
func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.conns = nil
}

// The primary and half of the nodes are cut off from the rest, and go on with each
// other; the rest goes on with a new primary. What the old one acknowledges from then
// on is lost when it is gone, and may have been admitted twice, but no more often.
func TestSentinelSplit(t *testing.T) {
	takesLong(t)
	proved(t, split)
}

func split(t testing.TB) *topologyRun {
	s := redistest.StartSentinels(t, 2, 3, keepsData...)
	for _, server := range append([]*redistest.Server{s.Primary}, s.Replicas...) {
		server.SetUser(t, limiterUser, limiterPassword, "~*", "&*", "+@all")
	}
	cut := &gate{sentinels: s.Addrs()}
	r := runOn(t, "sentinel, the fleet is split", failoverLoad(), slowly(2500), func(node int) redis.UniversalClient {
		opts := &redis.FailoverOptions{MasterName: s.Master, SentinelAddrs: s.Addrs(), Username: limiterUser, Password: limiterPassword}
		if node < 2 {
			opts.Dialer = cut.dial
		}
		return redis.NewFailoverClient(opts)
	})
	stale := severed(t, s)
	r.out.began = r.now()
	s.DownAfter(t, downAfter)
	cut.set(true)
	deafen(t, s.Primary)
	next := promoted(t, s)
	parted := r.now()
	time.Sleep(lasting(1500 * time.Millisecond))
	healed := r.now()
	s.Primary.Kill()
	cut.set(false)
	r.judgeFailover(s.Primary, next, stale[next.Addr])

	var sides [2]int
	for i := range r.out.answers {
		if a := &r.out.answers[i]; a.path == hybrid.PathExact && a.at > parted && a.end() < healed {
			sides[a.node/2]++
		}
	}
	t.Logf("split for %v, in which the old primary answered %d requests and the new one %d", (healed - parted).Round(time.Millisecond), sides[0], sides[1])
	if min(sides[0], sides[1]) < 50 {
		t.Error("there was no split")
	}
	return r
}

// deafen lets a server refuse all commands of the sentinels, which are not signed
// in: to them it is down.
func deafen(t testing.TB, s *redistest.Server) {
	t.Helper()
	if err := s.Client(t).Do(context.Background(), "acl", "setuser", "default", "-@all").Err(); err != nil {
		t.Fatal(err)
	}
}
