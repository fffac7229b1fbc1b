package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridgrpc"
)

// mostCalls ends an act whose limit does not deny.
const mostCalls = 100

// dial is a client of the service.
func dial(address string, opts ...grpc.DialOption) (healthpb.HealthClient, func(), error) {
	conn, err := grpc.NewClient(address, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, nil, err
	}
	return healthpb.NewHealthClient(conn), func() { conn.Close() }, nil
}

// as is the context of calls with an API key.
func as(ctx context.Context, key string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "x-api-key", key)
}

// showDenial calls until it is denied, and prints what a client is told.
func showDenial(ctx context.Context, out io.Writer, _ *hybrid.Node, address string) error {
	client, hangUp, err := dial(address)
	if err != nil {
		return err
	}
	defer hangUp()
	fmt.Fprintln(out, "\na client that calls as fast as it can:")
	for range mostCalls {
		var trailer metadata.MD
		reply, err := client.Check(as(ctx, "key-of-ann"), &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer))
		switch status.Code(err) {
		case codes.OK:
			fmt.Fprintf(out, "  OK  %v, x-ratelimit-remaining %v\n", reply.Status, trailer.Get("x-ratelimit-remaining"))
		case codes.ResourceExhausted:
			printDenial(out, status.Convert(err), trailer)
			return nil
		default:
			return err
		}
	}
	return fmt.Errorf("%d calls, and none was denied", mostCalls)
}

func printDenial(out io.Writer, st *status.Status, trailer metadata.MD) {
	fmt.Fprintf(out, "  %v  %s\n", st.Code(), st.Message())
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			fmt.Fprintf(out, "    RetryInfo     %v\n", d.RetryDelay.AsDuration())
		case *errdetails.QuotaFailure:
			for _, v := range d.Violations {
				fmt.Fprintf(out, "    QuotaFailure  %s: %s\n", v.Subject, v.Description)
			}
		}
	}
	for _, name := range []string{"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after", "grpc-retry-pushback-ms"} {
		fmt.Fprintf(out, "    %-22s %v\n", name, trailer.Get(name))
	}
}

// policy lets gRPC retry denials by itself. It would come back after 10 ms; the server's
// pushback says when instead.
const policy = `{"methodConfig": [{"name": [{"service": "grpc.health.v1.Health"}], "retryPolicy": {
	"maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// showRetries is a client that knows nothing of limits, but has a retry policy.
func showRetries(ctx context.Context, out io.Writer, _ *hybrid.Node, address string) error {
	client, hangUp, err := dial(address, grpc.WithDefaultServiceConfig(policy))
	if err != nil {
		return err
	}
	defer hangUp()
	fmt.Fprintln(out, "\na client with a retry policy, which waits as it is told:")
	return callSome(as(ctx, "key-of-bob"), out, client)
}

// showPacing is a client that keeps itself to what the service allows: all programs of
// the fleet together, since its limiter is shared like any other.
func showPacing(ctx context.Context, out io.Writer, node *hybrid.Node, address string) error {
	own, err := node.Limiter("own-calls", perKey, &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		return err
	}
	wait, err := hybridgrpc.UnaryClient(own, nil)
	if err != nil {
		return err
	}
	client, hangUp, err := dial(address, grpc.WithChainUnaryInterceptor(wait), grpc.WithDefaultServiceConfig(policy))
	if err != nil {
		return err
	}
	defer hangUp()
	fmt.Fprintln(out, "\na client that waits before it calls:")
	return callSome(as(ctx, "key-of-carol"), out, client)
}

// someCalls are two more than the limit has room for at once.
const someCalls = 5

func callSome(ctx context.Context, out io.Writer, client healthpb.HealthClient) error {
	start := time.Now()
	for range someCalls {
		if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
			return err
		}
		fmt.Fprintf(out, "  OK after %v\n", time.Since(start).Round(10*time.Millisecond))
	}
	return nil
}
