package hybrid_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// newNode makes a node on an embedded Redis, for examples that run anywhere.
func newNode() (*hybrid.Node, func()) {
	store := miniredis.NewMiniRedis()
	if err := store.Start(); err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: store.Addr()})
	// A second, so that the output does not depend on how busy the machine is.
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second})
	if err != nil {
		panic(err)
	}
	return node, func() {
		_ = node.Close()
		_ = rdb.Close()
		store.Close()
	}
}

func ExampleLimiter_Allow() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	api, err := node.Limiter("api", hybrid.PerMinute(3), nil)
	if err != nil {
		panic(err)
	}
	for range 5 {
		res, err := api.Allow(ctx, "customer-42")
		if err != nil {
			panic(err) // misuse; a failing Redis is no error
		}
		fmt.Println(res.Allowed)
	}
	// Output:
	// true
	// true
	// true
	// false
	// false
}

// A handler answers 429 with the whole seconds after which a retry can succeed.
func ExampleLimiter_Allow_http() {
	node, stop := newNode()
	defer stop()
	api, err := node.Limiter("api", hybrid.PerMinute(1), nil)
	if err != nil {
		panic(err)
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		res, err := api.Allow(r.Context(), r.Header.Get("X-API-Key"))
		if err == nil && !res.Allowed {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(res.RetryAfter.Seconds()))))
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusOK)
	}
	for range 2 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", "customer-42")
		handler(w, r)
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 ""
	// 429 "60"
}

func ExampleLimiter_AllowN() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	// 10 rows per hour may be exported.
	export, err := node.Limiter("export", hybrid.PerHour(10), nil)
	if err != nil {
		panic(err)
	}
	for _, rows := range []int64{6, 6, 4, 11} {
		res, err := export.AllowN(ctx, "customer-42", rows)
		if err != nil {
			panic(err)
		}
		fmt.Println(rows, res.Allowed, res.RetryAfter == hybrid.Never)
	}
	// Output:
	// 6 true false
	// 6 false false
	// 4 true false
	// 11 false true
}

func ExampleLimiter_Wait() {
	node, stop := newNode()
	defer stop()

	mail, err := node.Limiter("mail", hybrid.PerMinute(1), nil)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(mail.Wait(ctx, "smtp"))
	fmt.Println(mail.Wait(ctx, "smtp")) // at once: its turn would come in a minute
	// Output:
	// <nil>
	// hybrid: the wait would exceed the context's deadline: context deadline exceeded
}

func ExampleNode_AllowAll() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	user, err := node.Limiter("user", hybrid.PerHour(100), nil)
	if err != nil {
		panic(err)
	}
	tenant, err := node.Limiter("tenant", hybrid.PerHour(2), nil)
	if err != nil {
		panic(err)
	}
	for range 3 {
		res, err := node.AllowAll(ctx,
			hybrid.Check{Limiter: user, Key: "ann"},
			hybrid.Check{Limiter: tenant, Key: "acme"})
		if err != nil {
			panic(err)
		}
		fmt.Println(res.Allowed, res.Limit) // of the tightest, or of the one that denied
	}
	// Output:
	// true 2
	// true 2
	// false 2
}

func ExampleLimiterOptions_tiers() {
	node, stop := newNode()
	defer stop()

	api, err := node.Limiter("api", hybrid.PerMinute(60), &hybrid.LimiterOptions{
		LimitFor: func(key string) (hybrid.Limit, bool) {
			if strings.HasPrefix(key, "pro-") {
				return hybrid.PerMinute(6000), true
			}
			return hybrid.Limit{}, false // the limiter's own
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(api.Limit("free-1"))
	fmt.Println(api.Limit("pro-1"))
	// Output:
	// 60 per 1m0s
	// 6000 per 1m0s
}

func ExampleLimiter_Refund() {
	node, stop := newNode()
	defer stop()
	ctx := context.Background()

	jobs, err := node.Limiter("jobs", hybrid.PerDay(10), nil)
	if err != nil {
		panic(err)
	}
	if res, err := jobs.AllowN(ctx, "customer-42", 10); err != nil || !res.Allowed {
		panic("not admitted")
	}
	// The job failed before it cost anything.
	if err := jobs.Refund("customer-42", 10); err != nil {
		panic(err)
	}
	_ = node.Flush(ctx) // or wait for the next sync
	res, err := jobs.AllowN(ctx, "customer-42", 10)
	fmt.Println(res.Allowed, err)
	// Output:
	// true <nil>
}

func ExampleWithin() {
	fmt.Println(hybrid.Within(0, 0) == hybrid.Strict)
	fmt.Println(hybrid.Within(0.1, 0) == hybrid.Balanced)
	fmt.Println(hybrid.Within(0.05, 0.05))
	// Output:
	// true
	// true
	// Within(0.05, 0.05)
}
