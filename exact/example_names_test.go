package exact_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
)

func ExampleLimit() {
	fmt.Println(exact.PerSecond(100).WithBurst(20))
	fmt.Println(exact.Window(1000, time.Minute))
	fmt.Println(exact.PerSecond(-1).Validate())
	// Output:
	// 100 per 1s, burst 20
	// 1000 per window of 1m0s
	// hybrid: invalid limit: count -1, allowed 0 to 9007199254740992
}

// Token buckets refill all the time, windows begin anew at multiples of their period.
func ExampleLimit_constructors() {
	for _, limit := range []exact.Limit{
		exact.PerSecond(10), exact.PerMinute(10), exact.PerHour(10), exact.PerDay(10),
		exact.Per(10, 15*time.Minute), exact.Window(10, 24*time.Hour), exact.Unlimited(),
	} {
		fmt.Println(limit, limit.Windowed())
	}
	// Output:
	// 10 per 1s false
	// 10 per 1m0s false
	// 10 per 1h0m0s false
	// 10 per 24h0m0s false
	// 10 per 15m0s false
	// 10 per window of 24h0m0s true
	// unlimited false
}

// The parts of a limit, and the rule that the script in Redis gets.
func ExampleLimit_parts() {
	limit := exact.PerSecond(100).WithBurst(20)
	fmt.Println(limit.Count(), limit.Period(), limit.Burst())
	rule := limit.Rule() // in tokens and microseconds
	fmt.Println(rule.Burst, rule.Rate, rule.Window)
	// Output:
	// 100 1s 20
	// 20 0.0001 0
}

// A key whose limit has become 0 is reset by a rule that the store can settle by.
func ExampleLimit_ResetRule() {
	fmt.Println(exact.PerHour(100).ResetRule() == exact.PerHour(100).Rule())
	fmt.Println(exact.PerHour(0).Rule().Burst, exact.PerHour(0).ResetRule().Burst)
	// Output:
	// true
	// 0 1
}

// What a key is called in Redis, for who looks there.
func ExampleStore_Account() {
	rdb := redis.NewClient(&redis.Options{}) // nobody is asked
	defer rdb.Close()
	store, err := exact.New(rdb, &exact.Options{Prefix: "shop"})
	if err != nil {
		panic(err)
	}
	fmt.Println(store.Account("orders", exact.CellKey("alice")))
	// Output:
	// shop:{}a1:6:orders:alice
}

// Long keys go by their hash, so that no client fills memory with them.
func ExampleCellKey() {
	fmt.Println(exact.CellKey("alice"))
	long := exact.CellKey(strings.Repeat("a", 1000))
	fmt.Println(len(long), long[:9])
	// Output:
	// alice
	// 65 #41edece4
}

// A part of a cluster that fails is the outage of its accounts alone.
func ExampleStore_Lane() {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}) // nobody is asked
	defer rdb.Close()
	store, err := exact.New(rdb, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(store.Lanes(), "lanes")
	for _, key := range []string{"alice", "bob"} {
		fmt.Println(key, "is in lane", store.Lane(store.Account("api", exact.CellKey(key))))
	}
	fmt.Println("the fleet of the limiter is in lane", store.FleetLane("api"))
	// Output:
	// 48 lanes
	// alice is in lane 43
	// bob is in lane 39
	// the fleet of the limiter is in lane 3
}
