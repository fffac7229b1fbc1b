package hybridgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridgrpc"
)

// newNode makes a node on an embedded Redis, for examples that run anywhere.
func newNode() (*hybrid.Node, func()) {
	store := miniredis.NewMiniRedis()
	if err := store.Start(); err != nil {
		panic(err)
	}
	store.ClockTTL(true)
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

// newLimiter makes a limiter that admits exactly its limit.
func newLimiter(node *hybrid.Node, name string, limit hybrid.Limit) *hybrid.Limiter {
	l, err := node.Limiter(name, limit, &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		panic(err)
	}
	return l
}

// serve is a client of a server of gRPC's health service.
func serve(server []grpc.ServerOption, client ...grpc.DialOption) (healthpb.HealthClient, func()) {
	listener := bufconn.Listen(1 << 16)
	srv := grpc.NewServer(server...)
	healthpb.RegisterHealthServer(srv, health.NewServer())
	go func() { _ = srv.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///health", append(client,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		panic(err)
	}
	return healthpb.NewHealthClient(conn), func() {
		_ = conn.Close()
		srv.Stop()
	}
}

// as is a context of calls with an API key.
func as(key string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "x-api-key", key)
}

// show calls once and prints what came of it.
func show(ctx context.Context, c healthpb.HealthClient) {
	var trailer metadata.MD
	_, err := c.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer))
	st := status.Convert(err)
	fmt.Print(st.Code())
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.QuotaFailure:
			fmt.Print(" by limit ", d.Violations[0].Subject)
		case *errdetails.RetryInfo:
			fmt.Print(", retry after ", d.RetryDelay.AsDuration().Round(time.Second))
		}
	}
	if remaining := trailer.Get("x-ratelimit-remaining"); err == nil && len(remaining) > 0 {
		fmt.Print(", remaining ", remaining[0])
	}
	fmt.Println()
}

// Each API key has two calls a minute. Clients are told which limit denied, and when
// to come back.
func Example() {
	node, stop := newNode()
	defer stop()
	api := newLimiter(node, "api", hybrid.PerMinute(2))
	opts := &hybridgrpc.ServerOptions{Key: hybridgrpc.Metadata("x-api-key"), NoKey: codes.Unauthenticated}
	unary, err := hybridgrpc.UnaryServer(api, opts)
	if err != nil {
		panic(err)
	}
	stream, err := hybridgrpc.StreamServer(api, opts)
	if err != nil {
		panic(err)
	}
	client, closeAll := serve([]grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)})
	defer closeAll()
	for range 3 {
		show(as("k1"), client)
	}
	show(as("k2"), client)
	show(context.Background(), client)
	// Output:
	// OK, remaining 1
	// OK, remaining 0
	// ResourceExhausted, retry after 30s by limit api
	// OK, remaining 1
	// Unauthenticated
}

// A limit per user and method, and one of all users together. A call is charged by
// both or by none.
func ExampleUnaryServer_severalLimits() {
	node, stop := newNode()
	defer stop()
	unary, err := hybridgrpc.UnaryServer(newLimiter(node, "user", hybrid.PerHour(2)), &hybridgrpc.ServerOptions{
		Key:  hybridgrpc.Join(hybridgrpc.Metadata("x-api-key"), hybridgrpc.Method()),
		More: []hybridgrpc.Check{{Limiter: newLimiter(node, "all", hybrid.PerHour(3)), Key: hybridgrpc.Fixed("all")}},
	})
	if err != nil {
		panic(err)
	}
	client, closeAll := serve([]grpc.ServerOption{grpc.ChainUnaryInterceptor(unary)})
	defer closeAll()
	for _, user := range []string{"ann", "ann", "ann", "bob", "bob"} {
		show(as(user), client)
	}
	// Output:
	// OK, remaining 1
	// OK, remaining 0
	// ResourceExhausted, retry after 30m0s by limit user
	// OK, remaining 0
	// ResourceExhausted, retry after 20m0s by limit all
}

// Other methods have other limits: one interceptor for each, and health checks pass.
func ExampleServerOptions_methods() {
	node, stop := newNode()
	defer stop()
	reports, err := hybridgrpc.UnaryServer(newLimiter(node, "reports", hybrid.PerHour(10)), &hybridgrpc.ServerOptions{
		Methods: []string{"/shop.Reports/*"},
	})
	if err != nil {
		panic(err)
	}
	rest, err := hybridgrpc.UnaryServer(newLimiter(node, "rest", hybrid.PerHour(1)), &hybridgrpc.ServerOptions{
		Skip: func(_ context.Context, call hybridgrpc.Call) bool {
			return call.Method == "/grpc.health.v1.Health/Check" || call.Method == "/shop.Reports/Make"
		},
	})
	if err != nil {
		panic(err)
	}
	client, closeAll := serve([]grpc.ServerOption{grpc.ChainUnaryInterceptor(reports, rest)})
	defer closeAll()
	for range 2 {
		show(context.Background(), client)
	}
	// Output:
	// OK
	// OK
}

// A client with a retry policy is told how long to wait, waits, and never sees the
// denial.
func ExampleUnaryServer_retryPolicy() {
	node, stop := newNode()
	defer stop()
	unary, err := hybridgrpc.UnaryServer(newLimiter(node, "api", hybrid.Per(1, 100*time.Millisecond)), &hybridgrpc.ServerOptions{
		Key: hybridgrpc.Metadata("x-api-key"),
		Deny: func(_ context.Context, d hybridgrpc.Decision) error {
			fmt.Println("denied by limit", d.Name)
			return nil // the default error
		},
	})
	if err != nil {
		panic(err)
	}
	client, closeAll := serve([]grpc.ServerOption{grpc.ChainUnaryInterceptor(unary)}, grpc.WithDefaultServiceConfig(`{
		"methodConfig": [{
			"name": [{}],
			"retryPolicy": {
				"maxAttempts": 3,
				"initialBackoff": "0.001s",
				"maxBackoff": "0.001s",
				"backoffMultiplier": 1,
				"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]
			}
		}]
	}`))
	defer closeAll()
	show(as("k1"), client)
	show(as("k1"), client)
	// Output:
	// OK, remaining 0
	// denied by limit api
	// OK, remaining 0
}

// A program that keeps its own calls to what a service allows, wherever it runs.
func ExampleUnaryClient() {
	node, stop := newNode()
	defer stop()
	wait, err := hybridgrpc.UnaryClient(newLimiter(node, "health", hybrid.Per(1, 100*time.Millisecond)), nil)
	if err != nil {
		panic(err)
	}
	client, closeAll := serve(nil, grpc.WithChainUnaryInterceptor(wait))
	defer closeAll()

	start := time.Now()
	for range 3 {
		show(context.Background(), client)
	}
	fmt.Println("waited:", time.Since(start) >= 190*time.Millisecond)

	soon, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = client.Check(soon, &healthpb.HealthCheckRequest{})
	fmt.Println(status.Code(err), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// OK
	// OK
	// OK
	// waited: true
	// DeadlineExceeded true
}
