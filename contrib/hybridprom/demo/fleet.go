package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridprom"
)

// member is one node of the fleet, with what a server of its own would have.
type member struct {
	addr  string // where its /metrics are
	node  *hybrid.Node
	loads []load
	wire  *wire
	rdb   *redis.Client
	http  *http.Server
}

type fleet []*member

func start(c config) (f fleet, err error) {
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	prefix := fmt.Sprintf("demo-%d", time.Now().UnixNano()) // one run does not count what another used
	for i := range c.nodes {
		port := c.port
		if port != 0 {
			port += i
		}
		m, err := startMember(c.redis, prefix, port)
		if err != nil {
			return f, err
		}
		f = append(f, m)
	}
	return f, nil
}

func startMember(url, prefix string, port int) (*member, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("-redis: %w", err)
	}
	m := &member{wire: newWire()}
	opts.Dialer, opts.DialerRetries, opts.ContextTimeoutEnabled = m.wire.dial, 1, true
	m.rdb = redis.NewClient(opts)
	m.node, err = hybrid.New(m.rdb, &hybrid.Options{Prefix: prefix, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		m.loads, err = loadsOn(m.node)
	}
	if err == nil {
		err = m.listen(port)
	}
	if err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

// listen serves the metrics of the node.
func (m *member) listen(port int) error {
	collector, err := hybridprom.New(m.node, nil)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(collector); err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	m.addr = l.Addr().String()
	m.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = m.http.Serve(l) }() // until stop
	return nil
}

func (m *member) stop() {
	if m.http != nil {
		_ = m.http.Close()
	}
	if m.node != nil {
		_ = m.node.Close()
	}
	_ = m.rdb.Close()
}

func (f fleet) stop() {
	for _, m := range f {
		m.stop()
	}
}

// serve keeps the nodes busy, and cuts them off now and then, until ctx ends.
func (f fleet) serve(ctx context.Context, c config, out io.Writer) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, m := range f {
		wg.Go(func() { m.work(ctx, c.rate) })
	}
	for n := 1; c.outage > 0 && sleep(ctx, c.every-c.outage); n++ {
		victims := f
		if n%2 == 1 {
			victims = f[:1]
		}
		fmt.Fprintf(out, "%s: %d of %d nodes lose Redis for %v\n", time.Now().Format(time.TimeOnly), len(victims), len(f), c.outage)
		victims.cut(true)
		sleep(ctx, c.outage)
		victims.cut(false)
	}
	<-ctx.Done()
}

func (f fleet) cut(off bool) {
	for _, m := range f {
		m.wire.cut(off)
	}
}

// sleep is false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
