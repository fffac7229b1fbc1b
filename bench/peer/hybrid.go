package peer

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/exact"
)

// The library itself.
var (
	Strict = Kind{
		Name: "hybrid Strict", Rule: "token bucket over the fleet",
		Keeps: "a slice per key in memory, an account in Redis", Place: Memory | Redis,
		Busy: 1 << 16, // slices that nobody uses for 15 s go back
		Open: openHybrid(hybrid.Strict),
	}
	Balanced = Kind{
		Name: "hybrid Balanced", Rule: "token bucket over the fleet, 10 % on top",
		Keeps: "a floor per key in memory; for busy keys a slice, and an account in Redis", Place: Memory | Redis | Unasked,
		Open: openHybrid(hybrid.Balanced),
	}
	Exact = Kind{
		Name: "hybrid Exact", Rule: "token bucket over the fleet",
		Keeps: "an account per key in Redis, and its last word in memory", Place: Redis,
		Open: openHybrid(hybrid.Exact),
	}
	Take = Kind{
		Name: "exact.Store.Take", Rule: "token bucket over the fleet",
		Keeps: "an account per key in Redis", Place: Redis,
		Open: openTake,
	}
)

// patience is longer than any pause of a busy machine: a measurement is of
// decisions by the protocol, and none by the failure policy.
const patience = time.Second

// Hybrid is the library behind the interface.
type Hybrid struct {
	rdb  *redis.Client
	node *hybrid.Node
	lim  *hybrid.Limiter
}

func openHybrid(accuracy hybrid.Accuracy) func(Setup) (Limiter, error) {
	return func(s Setup) (Limiter, error) {
		h := &Hybrid{rdb: redis.NewClient(&redis.Options{Addr: s.Redis, ContextTimeoutEnabled: true})}
		var err error
		h.node, err = hybrid.New(h.rdb, &hybrid.Options{
			Prefix: s.Prefix, Servers: s.Servers, MaxKeys: max(2*s.Keys, 1<<20), StoreTimeout: patience,
			Logger: slog.New(slog.DiscardHandler), // Close says what matters
		})
		if err != nil {
			_ = h.rdb.Close()
			return nil, err
		}
		h.lim, err = h.node.Limiter("bench", hybrid.Per(s.Limit.Count, s.Limit.Period), &hybrid.LimiterOptions{Accuracy: accuracy})
		if err != nil {
			_ = h.Close()
			return nil, err
		}
		return h, nil
	}
}

// Allow asks the limiter.
func (h *Hybrid) Allow(key string) (bool, error) {
	r, err := h.lim.Allow(background, key)
	return r.Allowed, err
}

// Fill takes many tokens at once, as a busy key's callers do one by one: its
// slice lasts from then on.
func (h *Hybrid) Fill(key string) (bool, error) {
	r, err := h.lim.AllowN(background, key, 1<<18)
	return r.Allowed, err
}

// Stats is what the node has done.
func (h *Hybrid) Stats() hybrid.LimiterStats { return h.node.Stats().Total }

// Close fails if the failure policy had to decide: then something else was
// measured than what was meant.
func (h *Hybrid) Close() error {
	st := h.Stats()
	_ = h.node.Close() // of a million slices not all go back within its second; they lapse
	_ = h.rdb.Close()
	if n := st.FallbackAllowed + st.FallbackDenied; n > 0 {
		return fmt.Errorf("Redis did not answer %d requests within %v", n, patience)
	}
	return nil
}

// take is the script without a node in front of it: one call per request.
type take struct {
	rdb   *redis.Client
	store *exact.Store
	limit exact.Limit
}

func openTake(s Setup) (Limiter, error) {
	rdb := newClient(s.Redis)
	store, err := exact.New(rdb, &exact.Options{Prefix: s.Prefix})
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return &take{rdb, store, exact.Per(s.Limit.Count, s.Limit.Period)}, nil
}

func (t *take) Allow(key string) (bool, error) {
	d, err := t.store.Take(background, "bench", key, t.limit, 1)
	return d.Allowed, err
}

func (t *take) Close() error { return t.rdb.Close() }

// newClient is the client of every contestant that takes one: a connection for
// each caller that a measurement has.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: Callers})
}

// Callers is the most goroutines that ask a contestant at once.
const Callers = 64
