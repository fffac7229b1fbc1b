package hybridgrpc_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridgrpc"
)

// incoming is the context of a call as a server has it: from an address, with
// metadata given as name and value in turn.
func incoming(from string, pairs ...string) context.Context {
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))})
	return metadata.NewIncomingContext(ctx, metadata.Pairs(pairs...))
}

// onceEach returns what a server does with calls of which each key may make one. It
// prints what came of a call.
func onceEach(node *hybrid.Node, key hybridgrpc.Key) func(ctx context.Context, method, service string) {
	unary, err := hybridgrpc.UnaryServer(newLimiter(node, "once", hybrid.PerHour(1)), &hybridgrpc.ServerOptions{Key: key})
	if err != nil {
		panic(err)
	}
	return func(ctx context.Context, method, service string) {
		_, err := unary(ctx, &healthpb.HealthCheckRequest{Service: service}, &grpc.UnaryServerInfo{FullMethod: method},
			func(context.Context, any) (any, error) { return nil, nil })
		fmt.Println(status.Code(err))
	}
}

// Each API key has a budget. A call without one, or with two, is refused.
func ExampleMetadata() {
	node, stop := newNode()
	defer stop()
	call := onceEach(node, hybridgrpc.Metadata("x-api-key"))
	call(incoming("203.0.113.9:1234", "x-api-key", "k1"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.9:1234", "x-api-key", "k1"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.9:1234", "x-api-key", "k2"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.9:1234"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.9:1234", "x-api-key", "k3", "x-api-key", "k4"), "/shop.Orders/Place", "")
	// Output:
	// OK
	// ResourceExhausted
	// OK
	// InvalidArgument
	// InvalidArgument
}

// Each address has a budget, whatever its calls claim.
func ExamplePeerIP() {
	node, stop := newNode()
	defer stop()
	call := onceEach(node, hybridgrpc.PeerIP(&hybridgrpc.IPOptions{IPv6Bits: 56}))
	call(incoming("[2001:db8:0:1::1]:1234"), "/shop.Orders/Place", "")
	call(incoming("[2001:db8:0:2::2]:1234"), "/shop.Orders/Place", "") // of the same /56
	call(incoming("203.0.113.9:1234"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.9:5678", "x-forwarded-for", "198.51.100.1"), "/shop.Orders/Place", "")
	// Output:
	// OK
	// ResourceExhausted
	// OK
	// ResourceExhausted
}

// Each client of a trusted proxy has a budget.
func ExampleClientIP() {
	node, stop := newNode()
	defer stop()
	call := onceEach(node, hybridgrpc.ClientIP([]string{"10.0.0.0/8"}, nil)) // the proxies
	call(incoming("10.0.0.1:1234", "x-forwarded-for", "203.0.113.9"), "/shop.Orders/Place", "")
	call(incoming("10.0.0.1:1234", "x-forwarded-for", "1.1.1.1, 203.0.113.9"), "/shop.Orders/Place", "") // forged: the same client
	call(incoming("10.0.0.1:1234", "x-forwarded-for", "203.0.113.10"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.10:1234", "x-forwarded-for", "1.1.1.1"), "/shop.Orders/Place", "") // around the proxy
	// Output:
	// OK
	// ResourceExhausted
	// OK
	// ResourceExhausted
}

// userKey is where an authenticating interceptor leaves the user.
type userKey struct{}

// Each user has a budget, as an interceptor earlier in the chain found them.
func ExampleValue() {
	node, stop := newNode()
	defer stop()
	call := onceEach(node, hybridgrpc.Value(userKey{}))
	ctx := incoming("203.0.113.9:1234")
	call(context.WithValue(ctx, userKey{}, "ann"), "/shop.Orders/Place", "")
	call(context.WithValue(ctx, userKey{}, "ann"), "/shop.Orders/Place", "")
	call(context.WithValue(ctx, userKey{}, "bob"), "/shop.Orders/Place", "")
	call(ctx, "/shop.Orders/Place", "")
	// Output:
	// OK
	// ResourceExhausted
	// OK
	// InvalidArgument
}

// Each method has a budget, which all callers share.
func ExampleMethod() {
	node, stop := newNode()
	defer stop()
	call := onceEach(node, hybridgrpc.Method())
	call(incoming("203.0.113.9:1234"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.10:1234"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.9:1234"), "/shop.Orders/Cancel", "")
	// Output:
	// OK
	// ResourceExhausted
	// OK
}

// One budget for all calls of all callers.
func ExampleFixed() {
	node, stop := newNode()
	defer stop()
	call := onceEach(node, hybridgrpc.Fixed("all"))
	call(incoming("203.0.113.9:1234"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.10:1234"), "/shop.Orders/Cancel", "")
	// Output:
	// OK
	// ResourceExhausted
}

// Each API key has a budget on each method.
func ExampleJoin() {
	node, stop := newNode()
	defer stop()
	call := onceEach(node, hybridgrpc.Join(hybridgrpc.Metadata("x-api-key"), hybridgrpc.Method()))
	call(incoming("203.0.113.9:1234", "x-api-key", "k1"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.9:1234", "x-api-key", "k1"), "/shop.Orders/Place", "")
	call(incoming("203.0.113.9:1234", "x-api-key", "k1"), "/shop.Orders/Cancel", "")
	call(incoming("203.0.113.9:1234", "x-api-key", "k2"), "/shop.Orders/Place", "")
	// Output:
	// OK
	// ResourceExhausted
	// OK
	// OK
}

// Each tenant has a budget: what the request names before the first dot.
func ExampleKeyFunc() {
	node, stop := newNode()
	defer stop()
	call := onceEach(node, hybridgrpc.KeyFunc(func(_ context.Context, call hybridgrpc.Call) (string, error) {
		check, ok := call.Request.(*healthpb.HealthCheckRequest)
		if !ok {
			return "", fmt.Errorf("%T names no tenant", call.Request)
		}
		tenant, _, _ := strings.Cut(check.Service, ".")
		return tenant, nil // an empty one is no key
	}))
	for _, service := range []string{"acme.Orders", "acme.Bills", "other.Orders", ""} {
		call(incoming("203.0.113.9:1234"), healthpb.Health_Check_FullMethodName, service)
	}
	// Output:
	// OK
	// ResourceExhausted
	// OK
	// InvalidArgument
}

// A client keeps to the limit of each of its downstreams.
func ExampleTarget() {
	node, stop := newNode()
	defer stop()
	own, err := hybridgrpc.UnaryClient(newLimiter(node, "own", hybrid.PerHour(1)), &hybridgrpc.ClientOptions{
		Key:    hybridgrpc.Target(), // the default
		NoWait: true,
	})
	if err != nil {
		panic(err)
	}
	call := func(target string) {
		conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		err = own(context.Background(), "/shop.Orders/Place", nil, nil, conn, // gRPC calls it, by WithChainUnaryInterceptor
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil })
		fmt.Println(target, status.Code(err))
	}
	call("dns:///orders:443")
	call("dns:///orders:443")
	call("dns:///bills:443")
	// Output:
	// dns:///orders:443 OK
	// dns:///orders:443 ResourceExhausted
	// dns:///bills:443 OK
}

// A program's own answer to who is denied, with the time to wait in words.
func ExampleDecision_RetryAfter() {
	node, stop := newNode()
	defer stop()
	unary, err := hybridgrpc.UnaryServer(newLimiter(node, "api", hybrid.PerHour(1)), &hybridgrpc.ServerOptions{
		Key: hybridgrpc.Metadata("x-api-key"),
		Deny: func(_ context.Context, d hybridgrpc.Decision) error {
			if delay, ok := d.RetryAfter(); ok {
				return status.Errorf(d.Code, "come back in %.0f minutes", delay.Minutes())
			}
			return nil // the default error
		},
	})
	if err != nil {
		panic(err)
	}
	client, closeAll := serve([]grpc.ServerOption{grpc.ChainUnaryInterceptor(unary)})
	defer closeAll()
	for range 2 {
		_, err := client.Check(as("k1"), &healthpb.HealthCheckRequest{})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// rpc error: code = ResourceExhausted desc = come back in 60 minutes
}
