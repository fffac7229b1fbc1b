// Command service is the lines of the README as a program: an HTTP API that limits by API
// key, and that ends on SIGTERM in the right order: first HTTP, so that requests under
// way get their answers, then the node, which returns what it holds to Redis.
//
// It needs a Redis: -redis, by default localhost:6379.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

func main() {
	addr := flag.String("addr", ":8080", "where clients are served")
	store := flag.String("redis", "localhost:6379", "address of the Redis server")
	flag.Parse()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *addr, *store, mux); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
	fmt.Println("service: HTTP has ended, and what the node held is back in Redis")
}

func serve(ctx context.Context, addr, store string, mux http.Handler) (err error) {
	// Once per process. It works while Redis is down.
	rdb := redis.NewClient(&redis.Options{Addr: store, ContextTimeoutEnabled: true})
	node, err := hybrid.New(rdb, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }() // last: returns what it holds

	api, err := node.Limiter("api", hybrid.PerMinute(1000), nil) // per key, burst 1000
	if err != nil {
		return err
	}
	limit, err := httplimit.New(api, &httplimit.Options{Key: httplimit.Header("X-API-Key")})
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: limit(mux)} // 429 with Retry-After; X-RateLimit or the IETF's headers
	ended := make(chan error, 1)
	context.AfterFunc(ctx, func() { // on SIGTERM: requests under way get their answers, then the node closes
		late, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		ended <- server.Shutdown(late)
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
