package main

import (
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// openRedis is a client of the Redis of REDIS_URL or of an embedded one, and how
// to close both.
func openRedis() (client *redis.Client, kind string, closeAll func(), err error) {
	if url := os.Getenv("REDIS_URL"); url != "" {
		opts, err := redis.ParseURL(url)
		if err != nil {
			return nil, "", nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		opts.ContextTimeoutEnabled = true
		client = redis.NewClient(opts)
		return client, "the Redis of REDIS_URL", func() { client.Close() }, nil
	}
	store, err := miniredis.Run()
	if err != nil {
		return nil, "", nil, err
	}
	store.ClockTTL(true) // keys expire as they do in a real Redis
	client = redis.NewClient(&redis.Options{Addr: store.Addr(), ContextTimeoutEnabled: true})
	return client, "an embedded Redis", func() {
		client.Close()
		store.Close()
	}, nil
}
