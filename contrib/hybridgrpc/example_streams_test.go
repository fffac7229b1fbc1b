package hybridgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridgrpc"
)

// watch opens a stream and prints the first answer.
func watch(ctx context.Context, c healthpb.HealthClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err
	}
	state, err := stream.Recv()
	if err == nil {
		fmt.Println(state.Status)
	}
	return err
}

// Each API key may open two streams an hour. Who is denied is told when it receives.
func ExampleStreamServer() {
	node, stop := newNode()
	defer stop()
	stream, err := hybridgrpc.StreamServer(newLimiter(node, "watches", hybrid.PerHour(2)), &hybridgrpc.ServerOptions{
		Key: hybridgrpc.Metadata("x-api-key"),
	})
	if err != nil {
		panic(err)
	}
	client, closeAll := serve([]grpc.ServerOption{grpc.ChainStreamInterceptor(stream)})
	defer closeAll()
	for _, key := range []string{"k1", "k1", "k1", "k2"} {
		if err := watch(as(key), client); err != nil {
			fmt.Println(status.Code(err))
		}
	}
	// Output:
	// SERVING
	// SERVING
	// ResourceExhausted
	// SERVING
}

// A program whose streams wait before they open, so that the service never denies one.
func ExampleStreamClient() {
	node, stop := newNode()
	defer stop()
	wait, err := hybridgrpc.StreamClient(newLimiter(node, "watches", hybrid.Per(1, 100*time.Millisecond)), nil)
	if err != nil {
		panic(err)
	}
	client, closeAll := serve(nil, grpc.WithChainStreamInterceptor(wait))
	defer closeAll()

	start := time.Now()
	for range 3 {
		if err := watch(context.Background(), client); err != nil {
			panic(err)
		}
	}
	fmt.Println("waited:", time.Since(start) >= 190*time.Millisecond)

	soon, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err = watch(soon, client) // at once: its turn would come too late
	fmt.Println(status.Code(err), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// SERVING
	// SERVING
	// SERVING
	// waited: true
	// DeadlineExceeded true
}
