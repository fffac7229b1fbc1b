package hybrid_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
)

// A customer is denied and asks why.
func ExampleLimiter_Inspect() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api := must(node.Limiter("api", hybrid.PerDay(10), nil))
	must(api.AllowN(ctx, "customer-42", 10))
	must(api.Allow(ctx, "customer-42"))
	state := must(api.Inspect(ctx, "customer-42"))
	verdict, _, _ := strings.Cut(state.Why, ":") // the rest says for how long
	fmt.Println(verdict)
	fmt.Printf("%.0f of %d used in Redis, all free in %v\n", state.Store.Used, state.Limit.Burst(), state.Store.ResetAfter.Round(time.Hour))
	// Output:
	// Denied
	// 10 of 10 used in Redis, all free in 24h0m0s
}

// Who is denied most on this node.
func ExampleLimiter_Denied() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api := must(node.Limiter("api", hybrid.PerDay(10), &hybrid.LimiterOptions{Accuracy: hybrid.Strict}))
	for key, requests := range map[string]int{"customer-7": 12, "customer-42": 110, "customer-99": 3} {
		for range requests {
			must(api.Allow(ctx, key))
		}
	}
	for _, key := range api.Denied(10) {
		fmt.Println(key.Key, key.Total)
	}
	// Output:
	// customer-42 100
	// customer-7 2
}

func ExampleNode_Limiters() {
	node, stop := newNode()
	defer stop()

	for _, name := range []string{"login", "api"} {
		must(node.Limiter(name, hybrid.PerMinute(100), nil))
	}
	for _, l := range node.Limiters() {
		fmt.Println(l.Name(), l.Accuracy(), l.OnFailure())
	}
	// Output:
	// api Balanced FailLocal
	// login Balanced FailLocal
}

// What support tells a customer, and what an operator reads in a log.
func ExampleKeyState_Why() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api := must(node.Limiter("api", hybrid.PerDay(10), &hybrid.LimiterOptions{
		Accuracy: hybrid.Exact,
		LimitFor: func(key string) (hybrid.Limit, bool) { return hybrid.PerDay(0), key == "blocked" },
	}))
	for _, key := range []string{"customer-42", "blocked"} {
		fmt.Println(must(api.Inspect(ctx, key)).Why)
	}
	// Output:
	// Allowed: this node holds no token of the key and would ask Redis, where 10 tokens of 10 are free.
	// Denied: the limit is 0.
}

// Counts only grow: what happened in between is the difference of two Stats.
func ExampleHistogram_Quantile() {
	// Stats.CallTime, a minute ago and now.
	before := hybrid.Histogram{Bounds: []float64{0.001, 0.002, 0.004}, Counts: []uint64{10, 0, 0, 0}}
	now := hybrid.Histogram{Bounds: before.Bounds, Counts: []uint64{10, 80, 20, 0}}

	minute := hybrid.Histogram{Bounds: now.Bounds}
	for i := range now.Counts {
		minute.Counts = append(minute.Counts, now.Counts[i]-before.Counts[i])
	}
	fmt.Printf("%d calls, half of them within %.3f ms, 9 in 10 within %.3f ms\n",
		minute.Count(), 1000*minute.Quantile(0.5), 1000*minute.Quantile(0.9))
	// Output:
	// 100 calls, half of them within 1.625 ms, 9 in 10 within 3.000 ms
}

// How a limiter was made, for the line that a service logs when it starts.
func ExampleLimiter_settings() {
	node, stop := newNode()
	defer stop()

	for _, l := range []*hybrid.Limiter{
		must(node.Limiter("api", hybrid.PerMinute(100), nil)),
		must(node.Limiter("login", hybrid.PerMinute(5), &hybrid.LimiterOptions{Accuracy: hybrid.Exact, OnFailure: hybrid.FailClosed})),
		must(node.Limiter("new", hybrid.PerMinute(60), &hybrid.LimiterOptions{Shadow: true})),
	} {
		fmt.Printf("%s: %v, %v, %v, shadow %t\n", l.Name(), l.OwnLimit(), l.Accuracy(), l.OnFailure(), l.Shadow())
	}
	// Output:
	// api: 100 per 1m0s, Balanced, FailLocal, shadow false
	// login: 5 per 1m0s, Exact, FailClosed, shadow false
	// new: 60 per 1m0s, Balanced, FailLocal, shadow true
}

// The limiter's own limit is that of keys without one of their own.
func ExampleLimiter_OwnLimit() {
	node, stop := newNode()
	defer stop()

	api := must(node.Limiter("api", hybrid.PerMinute(60), &hybrid.LimiterOptions{
		LimitFor: func(key string) (hybrid.Limit, bool) { return hybrid.PerMinute(6000), key == "pro" },
	}))
	fmt.Println(api.Limit("pro"))
	fmt.Println(api.Limit("free") == api.OwnLimit())
	// Output:
	// 6000 per 1m0s
	// true
}

// Code that is given limiters finds the node that asks them together.
func ExampleLimiter_Node() {
	node, stop := newNode()
	defer stop()

	allowBoth := func(a, b *hybrid.Limiter, key string) bool {
		if a.Node() != b.Node() {
			panic("limiters of two nodes")
		}
		return must(a.Node().AllowAll(context.Background(), hybrid.Check{Limiter: a, Key: key}, hybrid.Check{Limiter: b, Key: key})).Allowed
	}
	hour := must(node.Limiter("hour", hybrid.PerHour(1), nil))
	day := must(node.Limiter("day", hybrid.PerDay(10), nil))
	fmt.Println(allowBoth(hour, day, "customer-42"))
	fmt.Println(allowBoth(hour, day, "customer-42"))
	// Output:
	// true
	// false
}
