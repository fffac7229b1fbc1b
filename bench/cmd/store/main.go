// Command store measures what an account costs Redis: the time of the settle script,
// of the process around it, and the bytes, beside floors and other layouts. It needs
// redis-server on PATH.
//
//	go run ./bench/cmd/store                 the tables, in half a minute
//	go run ./bench/cmd/store -docs           the same, into docs/benchmarks.md (in the repository's root)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/bench/report"
	"github.com/hybridlimit/hybrid/bench/store"
)

func main() {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "store:", err)
		stop()
		os.Exit(1)
	}
}

// silent is the log of the Redis clients: what goes wrong there shows in the outcomes.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func run(ctx context.Context, args []string, out io.Writer) error {
	var set store.Settings
	fs := flag.NewFlagSet("store", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.IntVar(&set.Rounds, "rounds", 11, "`number` of rounds in which everything has its turn")
	fs.IntVar(&set.Sample, "sample", 2048, "`accounts` settled in a turn")
	fs.IntVar(&set.Memory, "memory", 100_000, "`accounts` stored to measure their memory")
	fs.IntVar(&set.Calls, "calls", 500, "`number` of calls among which the longest is looked for")
	docs := fs.Bool("docs", false, "write the section of docs/benchmarks.md")
	if err := fs.Parse(args); err != nil {
		return err
	}
	for name, n := range map[string]int{"rounds": set.Rounds, "sample": set.Sample, "memory": set.Memory, "calls": set.Calls} {
		if n < 1 || n > 10_000_000 {
			return fmt.Errorf("-%s %d: allowed 1 to 10000000", name, n)
		}
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are allowed", fs.Arg(0))
	}
	rep, err := store.Measure(ctx, set, out)
	if err != nil {
		return err
	}
	rep.Print(out)
	if !*docs {
		return nil
	}
	return report.Write(report.Document, map[string]string{"bench:store": rep.Markdown(report.Made(rep.Redis))})
}
