package chaos

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// absences are the ways in which Redis may not be there from the start.
var absences = []struct {
	name   string
	client func(t *testing.T) *redis.Options
}{
	{"refused port", func(t *testing.T) *redis.Options {
		p := redistest.NewProxy(t, "127.0.0.1:1")
		p.Refuse()
		return &redis.Options{Addr: p.Addr}
	}},
	{"black hole", func(t *testing.T) *redis.Options {
		return &redis.Options{Addr: blackHole(t)}
	}},
	{"name server fails", func(*testing.T) *redis.Options {
		var names nameless
		names.on.Store(true)
		return &redis.Options{Addr: "store." + secretHost + ":6379", Dialer: names.dial}
	}},
	{"name that does not resolve", func(*testing.T) *redis.Options {
		return &redis.Options{Addr: "store.invalid:6379"}
	}},
}

// blackHole accepts connections and answers nothing.
func blackHole(t *testing.T) string {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listen.Close() })
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listen.Addr().String()
}

// Redis is not there when 20 nodes start, and stays away: New and Limiter work,
// callers wait for StoreTimeout at first and not at all once a node knows, and
// together the nodes admit no more than the limit, even if it is smaller than
// the fleet.
func TestRedisIsNotThere(t *testing.T) {
	for _, a := range absences {
		for _, limit := range []hybrid.Limit{hybrid.PerSecond(100), hybrid.PerMinute(5)} {
			t.Run(fmt.Sprintf("%s, %v", a.name, limit), func(t *testing.T) {
				if brief() && a.name != "refused port" {
					t.Skip("not in a brief selection")
				}
				judged(t, func() *outcome { return withoutStore(t, a.name, limit, a.client) })
			})
		}
	}
	begun := time.Now()
	for fleetGoroutines() > 0 && time.Since(begun) < 30*time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	if left := fleetStacks(); len(left) > 0 {
		t.Errorf("%d goroutines are left of closed nodes and clients, one of them %s", len(left), left[0])
	}
	t.Logf("the last goroutine ended %v after the last node was closed", time.Since(begun))
}

// withoutStore runs 20 nodes for a while that have no store.
func withoutStore(t *testing.T, name string, limit hybrid.Limit, client func(*testing.T) *redis.Options) *outcome {
	const nodes = 20
	l := usualLoad()
	l.workers, l.rate = 3, 2000
	idle := peak{goroutines: fleetGoroutines() + nodes*l.workers}
	began := time.Now()
	setup := usualFleet(began, func(int) redis.UniversalClient { return redis.NewClient(client(t)) })
	setup.nodes, setup.limit, setup.options.Servers = nodes, limit, nodes
	var f *fleet
	asFleet(func() { f = setup.start(t) })
	o := &outcome{fault: name, seed: *seedFlag, limit: limit, accuracy: setup.accuracy, nodes: nodes, timeout: defaultTimeout,
		tick: defaultTick, expect: expectation{down: always}, secrets: []string{secretMark, "127.0.0.1", secretHost, ".invalid"}, absent: true, idle: idle}
	stop := make(chan struct{})
	var answers func() []answer
	asFleet(func() { answers = l.drive(f, began, stop) })
	controls, samples := control(o.timeout, l.workers*nodes, began, stop), watch(f, began, stop)
	time.Sleep(lasting(shortFault))
	o.stopped = time.Since(began)
	o.ended, o.ready = o.stopped, o.stopped
	close(stop)
	o.answers, o.controls, o.samples = answers(), controls(), samples()
	o.events, o.logs, o.stats = f.heard(), f.logged(), f.stats()
	o.sort()
	return o
}

// A node that starts without Redis finds it when it comes.
func TestRedisComesLater(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	p.Refuse()
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	node, err := hybrid.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	l, err := node.Limiter("late", hybrid.PerSecond(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() hybrid.Path {
		r, err := l.Allow(context.Background(), "k")
		if err != nil {
			t.Fatal(err)
		}
		return r.Path
	}
	if path := ask(); path != hybrid.PathFallback {
		t.Fatalf("without Redis: %v", path)
	}
	redistest.Eventually(t, "the node knows", func() bool { ask(); return node.Stats().StoreDown })
	if err := p.Accept(); err != nil {
		t.Fatal(err)
	}
	came := time.Now()
	redistest.Eventually(t, "the node finds Redis", func() bool { return ask() == hybrid.PathExact })
	t.Logf("found after %v", time.Since(came))
}
