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
	verdict, _, _ := strings.Cut(state.Why(), ":") // the rest says for how long
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
