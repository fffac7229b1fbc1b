package httplimit_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// exchange is a request of a server that does not speak net/http, as Keys see it.
type exchange struct{ headers map[string][]string }

func (e *exchange) Context() context.Context    { return context.Background() }
func (e *exchange) RemoteAddr() string          { return "203.0.113.9:1234" }
func (e *exchange) Header(name string) []string { return e.headers[name] }
func (e *exchange) Pattern() string             { return "" }
func (e *exchange) Value(any) any               { return nil }

// A server of another kind asks, and writes down what it is told.
func ExampleNewDecider() {
	node, stop := newNode()
	defer stop()
	api, err := node.Limiter("api", hybrid.PerHour(1), nil)
	if err != nil {
		panic(err)
	}
	limits, err := httplimit.NewDecider([]httplimit.Limit{{Limiter: api, Key: httplimit.Header("X-API-Key")}}, nil)
	if err != nil {
		panic(err)
	}

	request := &exchange{headers: map[string][]string{"X-Api-Key": {"customer-42"}}}
	for range 2 {
		decision, err := limits.Decide(request)
		switch {
		case err != nil:
			fmt.Println(limits.Failure(err).Status)
		case decision.Result.Allowed:
			fmt.Println(decision.Status)
		default:
			fmt.Println(limits.Denial(decision).Status)
		}
		for _, field := range limits.Fields(&decision)[:2] {
			fmt.Println(" ", field.Name, field.Value)
		}
	}
	_, err = limits.Decide(&exchange{})
	fmt.Println(limits.Failure(err).Status)
	// Output:
	// 200
	//   X-Ratelimit-Limit 1
	//   X-Ratelimit-Remaining 0
	// 429
	//   X-Ratelimit-Limit 1
	//   X-Ratelimit-Remaining 0
	// 400
}

// A key of a function that does with the requests of any server.
func ExampleRequestKey() {
	tenant := httplimit.RequestKey(func(r httplimit.Request) (string, error) {
		lines := r.Header("Authorization")
		if len(lines) != 1 {
			return "", fmt.Errorf("%d Authorization headers", len(lines))
		}
		name, _, _ := strings.Cut(lines[0], ":")
		return name, nil
	})
	node, stop := newNode()
	defer stop()
	h := protect(newLimiter(node, "tenant", hybrid.PerHour(1)), &httplimit.Options{Key: tenant})
	for _, who := range []string{"acme:k1", "acme:k2", "other:k3", ""} {
		get(h, "203.0.113.9:1234", "/", []string{"Authorization: " + who})
	}
	// Output:
	// 200
	// 429
	// 200
	// 400
}
