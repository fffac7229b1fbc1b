// Command bench compares the library with the limiters that a Go service would
// use instead: the same work, the same Redis, in turn.
//
//	go run ./bench table      the comparison, in four minutes
//	go run ./bench maps       xsync v3, v4 and sync.Map, in half a minute
//	go run ./bench docs       both, into docs/benchmarks.md
//
// It starts redis-servers of its own, which must be on PATH, and ends them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

type command struct {
	name, what string
	run        func(ctx context.Context, args []string, out io.Writer) error
}

var commands = []command{
	{"table", "the comparison with peers, in four minutes", runTable},
	{"maps", "xsync v3, v4 and sync.Map, in half a minute", runMaps},
	{"docs", "both, into docs/benchmarks.md", runDocs},
}

func main() {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exitCode(run(ctx, os.Args[1:], os.Stdout)))
}

// silent is the log of the Redis client: a contestant that gets no answer
// counts as one.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// errUsage is a command line that says nothing to do.
var errUsage = errors.New("bench: which command? -h lists them")

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(out, usage())
		return nil
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return fmt.Errorf("bench: no command %q; -h lists them", args[0])
	}
	return commands[i].run(ctx, args[1:], out)
}

func usage() string {
	var b strings.Builder
	b.WriteString("usage: go run ./bench COMMAND [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-6s %s\n", c.name, c.what)
	}
	b.WriteString("\nCOMMAND -h lists its flags.\n")
	return b.String()
}

func exitCode(err error) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "bench: interrupted")
		return 130
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}
