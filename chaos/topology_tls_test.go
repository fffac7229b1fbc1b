package chaos

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// All works on a server that speaks nothing but TLS and wants a certificate; and with
// a client that has none the policy decides, like with any store that is not there.
func TestTLS(t *testing.T) {
	s, config := redistest.StartTLS(t)
	connect := func() *redis.Client {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, TLSConfig: config})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	if err := useAll(func() redis.UniversalClient { return connect() }, connect()); err != nil {
		t.Error(err)
	}
	stranger := config.Clone()
	stranger.Certificates = nil
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, TLSConfig: stranger})
	defer rdb.Close()
	node, err := hybrid.New(rdb, &hybrid.Options{Servers: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	l, err := node.Limiter("strangers", hybrid.PerHour(10), nil)
	if err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for range 50 {
		r, err := l.Allow(context.Background(), "k")
		if err != nil || r.Path != hybrid.PathFallback {
			t.Fatalf("without a certificate: by %v, error %v", r.Path, err)
		}
		if r.Allowed {
			admitted++
		}
		time.Sleep(2 * time.Millisecond)
	}
	if admitted != 10 || !node.Stats().StoreDown {
		t.Errorf("%d of 10 admitted, store down: %t", admitted, node.Stats().StoreDown)
	}
}
