package exact_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
)

// What one node's requests have paid for is taken by one other node.
func ExampleStore_Claim() {
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer mini.Close()
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	store, err := exact.New(rdb, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	mark := []slice.Mark{{Account: store.Account("api", "alice"), Cost: 50, At: 1_000_000, Paid: true}}
	fmt.Println(store.Mark(ctx, mark))
	fmt.Println(store.Claim(ctx, mark))
	fmt.Println(store.Claim(ctx, mark))
	// Output:
	// <nil>
	// [true] <nil>
	// [false] <nil>
}
