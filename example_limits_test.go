package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// must is for examples: what fails here is a mistake in them.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A process needs one client and one node.
func ExampleNew() {
	server := must(miniredis.Run()) // your Redis
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	node, err := hybrid.New(client, &hybrid.Options{
		Prefix:  "billing", // one per service
		Servers: 4,         // at least so many share the limits, also while Redis is down
	})
	if err != nil {
		panic(err)
	}
	defer node.Close()

	_, err = hybrid.New(client, &hybrid.Options{SyncInterval: time.Hour})
	fmt.Println(errors.Is(err, hybrid.ErrInvalidOption), err)
	// Output:
	// true hybrid: invalid option: Options.SyncInterval: 1h0m0s, allowed 1ms to 10s
}

// Limiters have names, by which servers find each other.
func ExampleNode_Limiter() {
	node, stop := newNode()
	defer stop()

	login, err := node.Limiter("login", hybrid.PerMinute(5), &hybrid.LimiterOptions{
		Accuracy:  hybrid.Exact,      // every admission asks Redis
		OnFailure: hybrid.FailClosed, // and without Redis nobody may try passwords
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(login.Name(), login.Limit("any"))

	_, err = node.Limiter("login", hybrid.PerMinute(5), nil)
	fmt.Println(errors.Is(err, hybrid.ErrDuplicateLimiter))
	_, err = node.Limiter("other", hybrid.Limit{}, nil)
	fmt.Println(errors.Is(err, hybrid.ErrInvalidLimit))
	// Output:
	// login 5 per 1m0s
	// true
	// true
}

// Redis learns with the next sync what was used; after a Flush it knows.
func ExampleNode_Flush() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api := must(node.Limiter("api", hybrid.PerDay(100), nil))
	must(api.AllowN(ctx, "customer-42", 10))
	if err := api.Charge("customer-42", 5); err != nil {
		panic(err)
	}
	fmt.Println(node.Flush(ctx))
	fmt.Println(must(api.Peek(ctx, "customer-42")).Remaining)
	// Output:
	// <nil>
	// 85
}

func ExampleNode_Shutdown() {
	node, stop := newNode()
	defer stop()
	api := must(node.Limiter("api", hybrid.PerDay(100), nil))

	// After the server has answered its last request: what this node holds goes
	// back to Redis, where the others find it.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(node.Shutdown(ctx))

	_, err := api.Allow(ctx, "customer-42")
	fmt.Println(errors.Is(err, hybrid.ErrClosed))
	// Output:
	// <nil>
	// true
}

// Close is Shutdown within a second, for a defer.
func ExampleNode_Close() {
	node, stop := newNode()
	defer stop()
	fmt.Println(node.Close())
	fmt.Println(node.Close()) // twice is fine
	// Output:
	// <nil>
	// <nil>
}

func ExampleNode_Stats() {
	node, stop := newNode()
	defer stop()
	api := must(node.Limiter("api", hybrid.PerDay(2), nil))
	for range 3 {
		must(api.Allow(context.Background(), "customer-42"))
	}
	stats := node.Stats()
	one := stats.Limiters["api"]
	fmt.Println(one.Keys, "key,", one.ExactDenied+one.MemoDenied, "request denied")
	fmt.Println(stats.Total.FallbackAllowed+stats.Total.FallbackDenied, "decided without Redis")
	// Output:
	// 1 key, 1 request denied
	// 0 decided without Redis
}

func ExampleLimiter_WaitN() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	batch := must(node.Limiter("batch", hybrid.PerHour(100), nil))
	fmt.Println(batch.WaitN(ctx, "import", 60))
	err := batch.WaitN(ctx, "import", 101) // no wait is long enough
	fmt.Println(errors.Is(err, hybrid.ErrExceedsBurst))
	// Output:
	// <nil>
	// true
}

// Peek shows how a key stands, and costs it nothing.
func ExampleLimiter_Peek() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api := must(node.Limiter("api", hybrid.PerDay(10), nil))
	must(api.AllowN(ctx, "customer-42", 10))
	res := must(api.Peek(ctx, "customer-42"))
	fmt.Println(res.Allowed, res.Remaining, "of", res.Limit)
	fmt.Println("one more in", res.RetryAfter.Round(time.Minute))
	// Output:
	// false 0 of 10
	// one more in 2h24m0s
}

// The cost of an answer is known when it has been written.
func ExampleLimiter_Charge() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	tokens := must(node.Limiter("tokens", hybrid.PerDay(1000), nil))
	fmt.Println(must(tokens.AllowN(ctx, "customer-42", 200)).Allowed) // an estimate
	if err := tokens.Charge("customer-42", 900); err != nil {         // it took 1100
		panic(err)
	}
	_ = node.Flush(ctx) // or wait for the next sync
	res := must(tokens.AllowN(ctx, "customer-42", 200))
	fmt.Println(res.Allowed, "before", res.RetryAfter.Round(time.Minute)) // 300 must refill first
	// Output:
	// true
	// false before 7h12m0s
}

// Support lets a customer go on.
func ExampleLimiter_Reset() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api := must(node.Limiter("api", hybrid.PerDay(10), nil))
	must(api.AllowN(ctx, "customer-42", 10))
	fmt.Println(must(api.Allow(ctx, "customer-42")).Allowed)
	if err := api.Reset(ctx, "customer-42"); err != nil {
		panic(err)
	}
	fmt.Println(must(api.Allow(ctx, "customer-42")).Allowed)
	// Output:
	// false
	// true
}

// A limit that changes keeps what was used: 10 of 10, then 10 of 15.
func ExampleLimiter_SetLimit() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api := must(node.Limiter("api", hybrid.PerDay(10), nil))
	must(api.AllowN(ctx, "customer-42", 10))
	if err := api.SetLimit(hybrid.PerDay(15)); err != nil {
		panic(err)
	}
	for range 2 {
		fmt.Println(must(api.AllowN(ctx, "customer-42", 5)).Allowed)
	}
	// Output:
	// true
	// false
}

func ExampleLimiter_Limit() {
	node, stop := newNode()
	defer stop()
	limit := must(node.Limiter("api", hybrid.PerMinute(600).WithBurst(50), nil)).Limit("customer-42")
	fmt.Println(limit.Count(), limit.Period(), limit.Burst(), limit.Windowed())
	// Output:
	// 600 1m0s 50 false
}

func ExampleLimiter_Name() {
	node, stop := newNode()
	defer stop()
	fmt.Println(must(node.Limiter("api", hybrid.PerMinute(600), nil)).Name())
	// Output:
	// api
}

// A limiter that is closed leaves its name to another one.
func ExampleLimiter_Close() {
	node, stop := newNode()
	defer stop()
	api := must(node.Limiter("api", hybrid.PerDay(10), nil))
	fmt.Println(api.Close())
	_, err := node.Limiter("api", hybrid.PerDay(20), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
}

// Token buckets refill all the time; a bucket that was idle is full.
func ExamplePer() {
	fmt.Println(hybrid.Per(100, 15*time.Minute))
	fmt.Println(hybrid.PerSecond(1000).WithBurst(50)) // smooth: no more than 50 at once
	// Output:
	// 100 per 15m0s
	// 1000 per 1s, burst 50
}

func ExamplePerSecond() {
	fmt.Println(hybrid.PerSecond(10) == hybrid.Per(10, time.Second))
	// Output:
	// true
}

func ExamplePerMinute() {
	fmt.Println(hybrid.PerMinute(10) == hybrid.Per(10, time.Minute))
	// Output:
	// true
}

func ExamplePerHour() {
	fmt.Println(hybrid.PerHour(10) == hybrid.Per(10, time.Hour))
	// Output:
	// true
}

func ExamplePerDay() {
	fmt.Println(hybrid.PerDay(10) == hybrid.Per(10, 24*time.Hour))
	// Output:
	// true
}

// Windows begin anew at multiples of their period: those of a day at midnight UTC.
func ExampleWindow() {
	quota := hybrid.Window(10_000, 24*time.Hour)
	fmt.Println(quota, quota.Windowed())
	// Output:
	// 10000 per window of 24h0m0s true
}

// A customer without a limit costs Redis nothing, and passes while it is away.
func ExampleUnlimited() {
	node, stop := newNode()
	defer stop()
	plans := map[string]hybrid.Limit{"customer-42": hybrid.Unlimited()}
	api := must(node.Limiter("api", hybrid.PerMinute(1), &hybrid.LimiterOptions{
		LimitFor: func(key string) (hybrid.Limit, bool) { l, ok := plans[key]; return l, ok },
	}))
	for range 2 {
		for _, customer := range []string{"customer-42", "customer-43"} {
			fmt.Println(customer, api.Limit(customer), must(api.Allow(context.Background(), customer)).Allowed)
		}
	}
	// Output:
	// customer-42 unlimited true
	// customer-43 1 per 1m0s true
	// customer-42 unlimited true
	// customer-43 1 per 1m0s false
}

// countCalls is a hook of a Redis client that counts those of requests, and those of none.
type countCalls struct{ requests, background atomic.Int64 }

func (c *countCalls) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *countCalls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if hybrid.IsBackground(ctx) {
			c.background.Add(1)
		} else {
			c.requests.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *countCalls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A hook of the Redis client tells what a node asks for one caller from what it sends for
// many, or for itself.
func ExampleIsBackground() {
	server := must(miniredis.Run()) // your Redis
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	calls := &countCalls{}
	client.AddHook(calls)
	node := must(hybrid.New(client, nil))
	defer node.Close()
	api := must(node.Limiter("api", hybrid.PerMinute(100), nil))

	must(api.Allow(context.Background(), "customer-42"))
	fmt.Println(calls.requests.Load(), "calls of callers,", calls.background.Load() > 0)
	must(api.Peek(context.Background(), "customer-42"))
	fmt.Println(calls.requests.Load() > 0)
	// Output:
	// 0 calls of callers, true
	// true
}

func ExampleAccuracy_Over() {
	for _, accuracy := range []hybrid.Accuracy{hybrid.Exact, hybrid.Strict, hybrid.Balanced, hybrid.Within(0.3, 0)} {
		fmt.Println(accuracy, accuracy.Over())
	}
	// Output:
	// Exact 0
	// Strict 0
	// Balanced 0.1
	// Within(0.3, 0) 0.3
}

// A path says what an answer rests on.
func ExamplePath_String() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api := must(node.Limiter("api", hybrid.PerDay(10), nil))
	fmt.Println(must(api.AllowN(ctx, "customer-42", 10)).Path) // the first request of a key asks Redis
	must(api.Allow(ctx, "customer-42"))                        // Redis refuses
	fmt.Println(must(api.Allow(ctx, "customer-42")).Path)
	// Output:
	// exact
	// memo
}
