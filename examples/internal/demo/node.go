// Package demo opens the node of an example: on the Redis of REDIS_URL, or on an
// embedded one, so that each runs with no set-up.
package demo

import (
	"fmt"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// OpenNode makes a node for the example of that name. stop ends it, its client and
// the embedded Redis.
func OpenNode(name string) (node *hybrid.Node, stop func(), err error) {
	client, hangUp, err := openRedis()
	if err != nil {
		return nil, nil, err
	}
	node, err = hybrid.New(client, &hybrid.Options{
		Prefix:       fmt.Sprintf("%s-%d", name, time.Now().UnixNano()), // one run does not count what another used
		StoreTimeout: time.Second,                                       // what you see does not depend on how busy the machine is
	})
	if err != nil {
		hangUp()
		return nil, nil, err
	}
	return node, func() {
		node.Close() // returns what it holds on lease
		hangUp()
	}, nil
}

func openRedis() (client *redis.Client, hangUp func(), err error) {
	if url := os.Getenv("REDIS_URL"); url != "" {
		opts, err := redis.ParseURL(url)
		if err != nil {
			return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		opts.ContextTimeoutEnabled = true
		client := redis.NewClient(opts)
		return client, func() { client.Close() }, nil
	}
	store, err := miniredis.Run()
	if err != nil {
		return nil, nil, err
	}
	store.ClockTTL(true) // keys expire as they do in a real Redis
	client = redis.NewClient(&redis.Options{Addr: store.Addr(), ContextTimeoutEnabled: true})
	return client, func() {
		client.Close()
		store.Close()
	}, nil
}
