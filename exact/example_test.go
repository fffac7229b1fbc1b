//go:build !386 && !arm && !mips && !mipsle

// The embedded server cannot tell the time in 32 bits.

package exact_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/slice"
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

// must is for examples: what fails here is a mistake in them.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A limiter whose every decision asks Redis, without slices and without a node.
func ExampleNew() {
	rdb, stop := client()
	defer stop()
	store, err := exact.New(rdb, &exact.Options{Prefix: "shop"}) // one per service
	if err != nil {
		panic(err)
	}
	d, err := store.Take(context.Background(), "orders", "alice", exact.PerMinute(10), 1)
	fmt.Println(d.Allowed, err)

	_, err = exact.New(rdb, &exact.Options{Prefix: "{shop}"})
	fmt.Println(errors.Is(err, exact.ErrInvalidOption))
	// Output:
	// true <nil>
	// true
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

// Peek shows how an account stands, and takes nothing.
func ExampleStore_Peek() {
	rdb, stop := client()
	defer stop()
	store, ctx := must(exact.New(rdb, nil)), context.Background()
	limit := exact.Window(10, 24*time.Hour)
	must(store.Take(ctx, "downloads", "alice", limit, 7))
	for range 2 {
		d := must(store.Peek(ctx, "downloads", "alice", limit))
		fmt.Println(d.Remaining, "of", d.Limit)
	}
	// Output:
	// 3 of 10
	// 3 of 10
}

// Reset lets a customer begin anew.
func ExampleStore_Reset() {
	rdb, stop := client()
	defer stop()
	store, ctx := must(exact.New(rdb, nil)), context.Background()
	limit := exact.PerDay(1)
	must(store.Take(ctx, "downloads", "alice", limit, 1))
	fmt.Println(must(store.Take(ctx, "downloads", "alice", limit, 1)).Allowed)
	if err := store.Reset(ctx, "downloads", "alice", limit); err != nil {
		panic(err)
	}
	fmt.Println(must(store.Take(ctx, "downloads", "alice", limit, 1)).Allowed)
	// Output:
	// false
	// true
}

// A node borrows a slice, serves from it, and gives back what it did not use.
func ExampleStore_Settle() {
	rdb, stop := client()
	defer stop()
	store, ctx := must(exact.New(rdb, nil)), context.Background()
	account, rule := store.Account("api", exact.CellKey("alice")), exact.Window(100, 24*time.Hour).Rule()

	borrow := &slice.Settle{Account: account, Rule: rule, Usage: slice.Usage{Want: 20, Least: 1, Unit: 1, Divisor: 2}}
	store.Settle(ctx, []*slice.Settle{borrow})
	fmt.Println(borrow.Outcome, "granted", borrow.Grant.Granted, "used", borrow.Grant.Used)

	report := &slice.Settle{Account: account, Rule: rule, Usage: slice.Usage{Tag: borrow.Grant.Tag, Spent: 5, Returned: 15}}
	store.Settle(ctx, []*slice.Settle{report})
	fmt.Println(report.Outcome, "lent", report.Grant.Lent, "used", report.Grant.Used)
	// Output:
	// ran granted 20 used 20
	// ran lent 0 used 5
}

// Nodes that share a limiter find each other by heartbeats.
func ExampleStore_Heartbeat() {
	rdb, stop := client()
	defer stop()
	store, ctx := must(exact.New(rdb, nil)), context.Background()
	fleet := &slice.Fleet{Limiter: "api"}
	for _, member := range []string{"node-1", "node-2", "node-2"} {
		store.Heartbeat(ctx, member, 5*time.Second, []*slice.Fleet{fleet})
		fmt.Println(fleet.Members, "joined:", fleet.Joined)
	}
	if err := store.Leave(ctx, "node-1", []string{"api"}); err != nil {
		panic(err)
	}
	store.Heartbeat(ctx, "node-2", 5*time.Second, []*slice.Fleet{fleet})
	fmt.Println(fleet.Members)
	// Output:
	// [node-1] joined: true
	// [node-1 node-2] joined: true
	// [node-1 node-2] joined: false
	// [node-2]
}

// A node was refused tokens that others hold in slices: they read the mark, and give
// them back.
func ExampleStore_Mark() {
	rdb, stop := client()
	defer stop()
	store, ctx := must(exact.New(rdb, nil)), context.Background()
	scarce := slice.Mark{Account: store.Account("api", exact.CellKey("alice")), Cost: 1, At: 1_000_000}
	if err := store.Mark(ctx, []slice.Mark{scarce}); err != nil {
		panic(err)
	}
	marks := must(store.Marks(ctx, 0, 100))
	fmt.Println(marks)
	fmt.Println(must(store.Marks(ctx, marks[0].At, 100))) // nothing new since then
	// Output:
	// [{hybrid:{}a1:3:api:alice 1 1000000 false}]
	// []
}

// Whether each part of Redis settles: a single server is one part.
func ExampleStore_Probe() {
	rdb, stop := client()
	defer stop()
	store := must(exact.New(rdb, nil))
	for lane := range store.Lanes() {
		fmt.Println(lane, store.Probe(context.Background(), lane))
	}
	// Output:
	// 0 <nil>
}
