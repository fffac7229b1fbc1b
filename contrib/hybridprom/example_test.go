package hybridprom_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridprom"
)

// A service with a limiter and its metrics, as Prometheus sees them.
func ExampleNew() {
	store := miniredis.NewMiniRedis()
	if err := store.Start(); err != nil {
		panic(err)
	}
	defer store.Close()
	rdb := redis.NewClient(&redis.Options{Addr: store.Addr()})
	defer rdb.Close()
	// A second, so that the output does not depend on how busy the machine is.
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	login, err := node.Limiter("login", hybrid.PerHour(3), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	if err != nil {
		panic(err)
	}

	collector, err := hybridprom.New(node, &hybridprom.Options{ConstLabels: prometheus.Labels{"store": "eu"}})
	if err != nil {
		panic(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()

	for range 5 {
		if _, err := login.Allow(context.Background(), "alice"); err != nil {
			panic(err)
		}
	}
	show(server.URL, "hybrid_decisions_total", "hybrid_keys", "hybrid_limiter_info", "hybrid_store_up")
	// Output:
	// hybrid_decisions_total{limiter="login",path="exact",result="allowed",store="eu"} 3
	// hybrid_decisions_total{limiter="login",path="exact",result="denied",store="eu"} 1
	// hybrid_decisions_total{limiter="login",path="fallback",result="allowed",store="eu"} 0
	// hybrid_decisions_total{limiter="login",path="fallback",result="denied",store="eu"} 0
	// hybrid_decisions_total{limiter="login",path="floor",result="allowed",store="eu"} 0
	// hybrid_decisions_total{limiter="login",path="memo",result="denied",store="eu"} 1
	// hybrid_keys{limiter="login",store="eu"} 1
	// hybrid_limiter_info{accuracy="Exact",limiter="login",on_failure="FailLocal",shadow="false",store="eu"} 1
	// hybrid_store_up{store="eu"} 1
}

// show prints the series of some metrics.
func show(url string, names ...string) {
	resp, err := http.Get(url)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		for _, name := range names {
			if strings.HasPrefix(lines.Text(), name+"{") {
				fmt.Println(lines.Text())
			}
		}
	}
}
