// Command hybridrls is a rate limit service for Envoy and the gateways built on
// it: envoy.service.ratelimit.v3 from a file of rules.
//
//	go run ./cmd/hybridrls -config example.yaml -listen 127.0.0.1:8081 -admin 127.0.0.1:9091
//
// It counts in the Redis of REDIS_URL (redis://, rediss://, unix://; with ?addr= for
// further servers of a Cluster), else in an embedded one, for trying. It takes up a
// changed file within two seconds; a file that it cannot read, or that is wrong, it
// leaves alone and says in which line. SIGTERM and SIGINT end it: requests under way
// are answered, and what it holds goes back to Redis.
//
// With -admin it has a second port, for operators alone: /debug/hybrid is a page of
// its limits and keys, /metrics what Prometheus reads, also what rules in shadow mode
// would have denied.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hybridlimit/hybrid/contrib/hybridrls"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exitCode(run(ctx, os.Args[1:], os.Getenv("REDIS_URL"), os.Stderr)))
}

func exitCode(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "hybridrls:", strings.TrimPrefix(err.Error(), "hybridrls: ")) // the package's errors have the name already
	return 1
}

// run serves until ctx ends. All that it says goes to out.
func run(ctx context.Context, args []string, redisURL string, out io.Writer) error {
	c, err := parseFlags(args, out)
	if err != nil {
		return err
	}
	rules, err := hybridrls.ReadFile(c.file)
	if err != nil {
		return err
	}
	if c.check {
		fmt.Fprintf(out, "%s: %d rules, no mistakes\n", c.file, rules.Len())
		return nil
	}
	logger := slog.New(slog.NewTextHandler(out, nil))
	svc, err := open(c, rules, redisURL, logger)
	if err != nil {
		return err
	}
	return svc.serve(ctx)
}
