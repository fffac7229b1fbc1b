package chaos

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

// This file is what a network does to a fleet.

// accountMark is in every call that settles, and in no other.
const accountMark = "{}a1:"

// proxied is a way by our own proxy, which knows requests from replies.
type proxied struct{ *redistest.Proxy }

func (p proxied) addr() string { return p.Addr }

func byProxy(r *run) route { return proxied{redistest.NewProxy(r.t, r.server.Addr)} }

// byProxyDo makes a step of a fault of what is done to the proxy.
func byProxyDo(do func(*redistest.Proxy)) func(*run) error {
	return func(r *run) error {
		do(r.route.(proxied).Proxy)
		return nil
	}
}

// again does something to the proxy every so often until the fault is over.
func again(every time.Duration, do func(*redistest.Proxy)) func(*run) error {
	return byProxyDo(func(p *redistest.Proxy) {
		for range shortFault / every {
			do(p)
			time.Sleep(every)
		}
	})
}

// toxic is a way by a proxy that harms bytes and connections.
type toxic struct{ *toxiproxy.Proxy }

func (x toxic) addr() string { return x.Listen }

func byToxic(r *run) route {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "store", "127.0.0.1:0", r.server.Addr)
	r.must(p.Start())
	r.t.Cleanup(p.Stop)
	return toxic{p}
}

// poison adds a toxic to what the server sends.
func poison(kind, attributes string) func(*run) error {
	return func(r *run) error {
		_, err := r.route.(toxic).Toxics.AddToxicJson(strings.NewReader(
			fmt.Sprintf(`{"name": "it", "type": %q, "stream": "downstream", "attributes": {%s}}`, kind, attributes)))
		return err
	}
}

// cure removes it.
func cure(r *run) error { return r.route.(toxic).Toxics.RemoveToxic(context.Background(), "it") }

// patience is how long a node waits for the reply to a settle before it gives
// the connection up.
const patience = time.Second

// late replies come so many milliseconds late.
func lateReplies(ms int) func(*run) error { return poison("latency", fmt.Sprintf(`"latency": %d`, ms)) }

// nameless is a switch: while it is on, no host name resolves.
type nameless struct{ on atomic.Bool }

func (n *nameless) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if n.on.Load() {
		return nil, &net.DNSError{Err: "server misbehaving", Name: "store." + secretHost, Server: "127.0.0.1:53", IsTemporary: true}
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// secretHost is the domain of a store, which no log line may tell.
const secretHost = "internal.example"

// names is the switch of a run.
func (r *run) names() *nameless {
	if r.state == nil {
		r.state = &nameless{}
	}
	return r.state.(*nameless)
}

// dropConnections makes the server close all connections but those of who asks.
func (r *run) dropConnections() error {
	return r.do("client", "kill", "type", "normal", "skipme", "yes")
}

// networkFaults harm the way to a server that is well.
var networkFaults = []fault{
	{
		name:   "black hole",
		way:    byProxy,
		begin:  byProxyDo(func(p *redistest.Proxy) { p.BlackHole(true) }),
		end:    byProxyDo(func(p *redistest.Proxy) { p.BlackHole(false) }),
		brief:  true,
		expect: expectation{down: always},
	},
	{
		name:   "refused port",
		way:    byProxy,
		begin:  byProxyDo((*redistest.Proxy).Refuse),
		end:    func(r *run) error { return r.route.(proxied).Accept() },
		brief:  true,
		expect: expectation{down: always, undialable: true},
	},
	{name: "black hole, then all connections close", way: byToxic, begin: poison("timeout", `"timeout": 0`), end: cure, expect: expectation{down: always}},
	{name: "replies reset", way: byToxic, begin: poison("reset_peer", `"timeout": 0`), end: cure, expect: expectation{down: always}},
	{
		name:   "connections reset in mid-batch",
		way:    byProxy,
		begin:  again(100*time.Millisecond, func(p *redistest.Proxy) { p.Tear(8, accountMark) }),
		end:    byProxyDo(func(p *redistest.Proxy) { p.Tear(0, accountMark) }),
		brief:  true,
		expect: expectation{down: maybe, byPolicy: 0.5},
	},
	{
		name:  "replies dropped after execution",
		way:   byProxy,
		begin: again(100*time.Millisecond, func(p *redistest.Proxy) { p.Swallow(4, accountMark) }),
		end: byProxyDo(func(p *redistest.Proxy) {
			p.Swallow(0, accountMark)
			time.Sleep(patience) // until then there are connections that answer nothing any more
		}),
		expect: expectation{down: maybe, byPolicy: 0.5},
	},
	{
		name: "server gone, connections that close late",
		way:  byToxic,
		begin: func(r *run) error {
			r.server.Kill()
			return poison("slow_close", `"delay": 2000`)(r)
		},
		end: func(r *run) error {
			if err := r.server.Restart(); err != nil {
				return err
			}
			return cure(r)
		},
		expect: expectation{down: always, undialable: true, losses: 1},
	},
	{name: "slow by 1 ms", way: byToxic, begin: lateReplies(1), end: cure, expect: expectation{down: never}},
	{
		// A call that needs a new connection waits for its introduction as well:
		// three round trips more, which make StoreTimeout with these.
		name: "slow by 5 ms", way: byToxic, begin: lateReplies(5), end: cure,
		expect: expectation{down: never, byPolicy: 0.01},
	},
	{
		name: "a pause of 25 ms",
		way:  byToxic,
		begin: func(r *run) error {
			from := time.Now()
			if err := lateReplies(25)(r); err != nil {
				return err
			}
			time.Sleep(25 * time.Millisecond)
			err := cure(r)
			if took := time.Since(from); took > 40*time.Millisecond { // two times StoreTimeout may stop a node
				r.t.Logf("the pause of 25 ms became one of %v", took)
				r.out.expect.down = maybe
			}
			return err
		},
		end:    func(*run) error { return nil },
		brief:  true,
		expect: expectation{down: never, byPolicy: 0.1},
	},
	{name: "slow by 50 ms", way: byToxic, begin: lateReplies(50), end: cure, lasts: 2 * time.Second, brief: true, expect: expectation{down: always}},
	{name: "slow by 2 s", way: byToxic, begin: lateReplies(2000), end: cure, expect: expectation{down: always}},
	{
		name:   "names do not resolve",
		client: func(r *run, o *redis.Options) { o.Dialer = r.names().dial },
		begin: func(r *run) error {
			r.names().on.Store(true)
			return r.dropConnections()
		},
		end:    func(r *run) error { r.names().on.Store(false); return nil },
		expect: expectation{down: always, undialable: true},
	},
}
