package main

import (
	"fmt"
	"log/slog"
	"net/url"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// openRedis is a client of the Redis that a URL names, or of an embedded one if
// there is none, and how to close both.
func openRedis(redisURL string, logger *slog.Logger) (client redis.UniversalClient, closeAll func(), err error) {
	if redisURL == "" {
		return openEmbedded(logger)
	}
	if client, err = dial(redisURL); err != nil {
		return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return client, func() { _ = client.Close() }, nil
}

func dial(redisURL string) (redis.UniversalClient, error) {
	if u, err := url.Parse(redisURL); err == nil && u.Query().Has("addr") {
		opts, err := redis.ParseClusterURL(redisURL)
		if err != nil {
			return nil, err
		}
		opts.ContextTimeoutEnabled = true
		return redis.NewClusterClient(opts), nil
	}
	opts, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, err
	}
	opts.ContextTimeoutEnabled = true
	return redis.NewClient(opts), nil
}

func openEmbedded(logger *slog.Logger) (redis.UniversalClient, func(), error) {
	store, err := miniredis.Run()
	if err != nil {
		return nil, nil, err
	}
	store.ClockTTL(true) // keys expire as they do in a real Redis
	logger.Warn("REDIS_URL IS NOT SET: limits are kept in this process alone, and forgotten when it ends. This is for trying, not for service")
	client := redis.NewClient(&redis.Options{Addr: store.Addr(), ContextTimeoutEnabled: true})
	return client, func() {
		_ = client.Close()
		store.Close()
	}, nil
}
