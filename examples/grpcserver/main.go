// Command grpcserver is a gRPC service behind limits, and clients that meet them: one
// that prints what it is told, one whose retry policy waits as told, and one that keeps
// itself to the limit.
//
// It needs nothing installed: the Redis in it is embedded, unless REDIS_URL
// names another.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/examples/internal/demo"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "grpcserver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	node, stop, err := demo.OpenNode("grpcserver")
	if err != nil {
		return err
	}
	defer stop()
	address, shut, err := serve(node)
	if err != nil {
		return err
	}
	defer shut()
	fmt.Fprintf(out, "serving grpc.health.v1.Health at %s\n", address)
	for _, act := range []func(context.Context, io.Writer, *hybrid.Node, string) error{
		showDenial, showRetries, showPacing,
	} {
		if err := act(ctx, out, node, address); err != nil {
			return err
		}
	}
	return nil
}
