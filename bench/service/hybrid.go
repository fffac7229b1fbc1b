package service

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// fleet is hybrid nodes, each with a client of its own.
type fleet struct {
	accuracy hybrid.Accuracy
	clients  []*redis.Client
	nodes    []*hybrid.Node
	limiters []*hybrid.Limiter
}

const syncInterval = 100 * time.Millisecond // the default

func startFleet(addr string, p Plan, accuracy hybrid.Accuracy) (f *fleet, err error) {
	f = &fleet{accuracy: accuracy}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	for i := range p.Nodes {
		time.Sleep(syncInterval / time.Duration(p.Nodes)) // servers do not start, and then settle, all at once
		rdb := connect(addr)
		f.clients = append(f.clients, rdb)
		node, err := hybrid.New(rdb, &hybrid.Options{
			NodeID: strconv.Itoa(i + 1), Servers: p.Nodes, SyncInterval: syncInterval,
			Logger: slog.New(slog.DiscardHandler), // the report counts what it would say
		})
		if err != nil {
			return f, err
		}
		f.nodes = append(f.nodes, node)
		l, err := node.Limiter("api", hybrid.Per(p.Limit, p.Period), &hybrid.LimiterOptions{Accuracy: accuracy})
		if err != nil {
			return f, err
		}
		f.limiters = append(f.limiters, l)
	}
	return f, nil
}

// connect is the client that each node has, whoever limits.
func connect(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
}

func (f *fleet) allow(ctx context.Context, node int, key string) (answer, error) {
	r, err := f.limiters[node].Allow(ctx, key)
	return answer{allowed: r.Allowed, path: uint8(r.Path)}, err
}

func (f *fleet) paths() (names []string) {
	for p := hybrid.PathSlice; p <= hybrid.PathFallback; p++ {
		names = append(names, p.String())
	}
	return names
}

func (f *fleet) over() float64 { return f.accuracy.Over() }

// books asks every node, which looks at each of its keys that is in touch with Redis.
func (f *fleet) books() (b books) {
	for _, n := range f.nodes {
		st := n.Stats()
		b.operations += st.Total.Operations
		b.waited += st.Total.Blocked
		b.keys += st.Total.Keys
		b.calls += st.Calls
		b.downs += st.StoreDowns
	}
	return b
}

// stop forgets the nodes at once: their accounts are nobody's any more.
func (f *fleet) stop() {
	now, cancel := context.WithCancel(context.Background())
	cancel() // nothing needs to be returned
	for _, n := range f.nodes {
		_ = n.Shutdown(now)
	}
	for _, c := range f.clients {
		_ = c.Close()
	}
}
