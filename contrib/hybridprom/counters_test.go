package hybridprom

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// Under a load in which everything happens at once — limits change, keys are
// forgotten, tokens are put back, connections break — no counter falls.
func TestCountersNeverFall(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	node := newNode(t, proxy.Addr, func(o *hybrid.Options) {
		o.MaxKeys, o.SyncInterval, o.StoreTimeout = 200, 10*time.Millisecond, 20*time.Millisecond
	})
	metrics := fresh(t, node)
	api := newLimiter(t, node, "api", hybrid.PerMinute(1000), nil)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for caller := range 8 {
		rng := rand.New(rand.NewPCG(uint64(caller), 11))
		wg.Go(func() {
			for ctx.Err() == nil {
				stir(t, api, rng)
				time.Sleep(200 * time.Microsecond) // the scrapes need the processor, too
			}
		})
	}
	defer wg.Wait()
	defer cancel()

	last, rises := metrics.scrape(), 0
	for round := range 60 {
		switch round % 20 {
		case 5:
			proxy.Reset()
		case 10:
			proxy.BlackHole(true)
		case 15:
			proxy.BlackHole(false)
		}
		time.Sleep(10 * time.Millisecond)
		now := metrics.scrape()
		for series, before := range last {
			after, there := now[series]
			if isCounter(series) && (!there || after < before) {
				t.Errorf("round %d: %s is %v (there: %t) after %v", round, series, after, there, before)
			}
			if after > before {
				rises++
			}
		}
		last = now
	}
	if rises < 300 || last["hybrid_evictions_total"] == 0 || last.sum("hybrid_decisions_total", `path="fallback"`) == 0 {
		t.Errorf("little happened: %d rises, %v", rises, last)
	}
}

// stir does one thing of many.
func stir(t *testing.T, api *hybrid.Limiter, rng *rand.Rand) {
	key := fmt.Sprint(rng.IntN(20) * rng.IntN(50))
	switch rng.IntN(40) {
	case 0:
		if err := api.SetLimit(hybrid.PerMinute(500 + rng.Int64N(1000))); err != nil {
			t.Error(err)
		}
	case 1:
		if err := api.Refund(key, 3); err != nil {
			t.Error(err)
		}
	default:
		allow(t, api, key, 1+rng.Int64N(4))
	}
}

func isCounter(series string) bool {
	name, _, _ := strings.Cut(series, "{")
	for _, suffix := range []string{"_total", "_bucket", "_count", "_sum"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
