//go:build !386 && !arm && !mips && !mipsle

// The embedded server cannot tell the time in 32 bits.

package exact_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
)

// client returns a client of an embedded Redis; use your own instead.
func client() (*redis.Client, func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	return rdb, func() { _ = rdb.Close(); server.Close() }
}

func ExampleStore_Take() {
	rdb, stop := client()
	defer stop()
	store, err := exact.New(rdb, nil)
	if err != nil {
		panic(err)
	}
	limit := exact.Window(2, 24*time.Hour)
	for range 3 {
		d, err := store.Take(context.Background(), "downloads", "alice", limit, 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter > 0)
	}
	// Output:
	// true 1 false
	// true 0 false
	// false 0 true
}

func ExampleStore_Take_cost() {
	rdb, stop := client()
	defer stop()
	store, err := exact.New(rdb, &exact.Options{Prefix: "shop"})
	if err != nil {
		panic(err)
	}
	limit := exact.PerHour(100).WithBurst(10)
	for _, cost := range []int64{8, 5, 2} { // what is refused is not charged
		d, err := store.Take(context.Background(), "export", "bob", limit, cost)
		if err != nil {
			panic(err)
		}
		fmt.Println(cost, d.Allowed)
	}
	// Output:
	// 8 true
	// 5 false
	// 2 true
}

func ExampleLimit() {
	fmt.Println(exact.PerSecond(100).WithBurst(20))
	fmt.Println(exact.Window(1000, time.Minute))
	fmt.Println(exact.PerSecond(-1).Validate())
	// Output:
	// 100 per 1s, burst 20
	// 1000 per window of 1m0s
	// hybrid: invalid limit: count -1, allowed 0 to 9007199254740992
}
