// Command service puts a whole service under open load and says what its limiter adds:
// 20 nodes in one process, a million keys, 50,000 requests a second, one real Redis on
// the same processors. Beside it: the same with every request asking Redis, and an empty
// limiter. It needs redis-server on PATH.
//
//	go run ./bench/cmd/service                         everything, in about five minutes
//	go run ./bench/cmd/service -only control -warmup 15s -seconds 10
//	go run ./bench/cmd/service -profile cpu.pb.gz -mutex mutex.pb.gz
//	go run ./bench/cmd/service -docs                   the same, into docs/ (in the repository's root)
//
// It exits 1 when a bound on over-admission is broken or a call fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/bench/report"
	"github.com/hybridlimit/hybrid/bench/service"
)

func main() {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "service:", err)
		stop()
		os.Exit(1)
	}
}

// silent is the log of the Redis clients: what goes wrong there shows in the report.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// job is what the command line asks for.
type job struct {
	service.Settings

	docs           bool
	profile, mutex string // files
}

func run(ctx context.Context, args []string, out io.Writer) error {
	j, err := parse(args, out)
	if err != nil {
		return err
	}
	rep, failed := service.Measure(ctx, j.Settings, out)
	if rep == nil {
		return failed
	}
	prof, err := rep.Profiles()
	if err != nil {
		return err
	}
	if err := rep.Print(out, prof); err != nil {
		return err
	}
	err = errors.Join(write(j.profile, rep.CPU), write(j.mutex, rep.Mutex))
	if j.docs && err == nil && failed == nil {
		err = writeDocs(rep, prof)
	}
	return errors.Join(failed, err)
}

func write(path string, content []byte) error {
	if path == "" {
		return nil
	}
	return os.WriteFile(path, content, 0o644)
}

// writeDocs writes the document's section and its pictures.
func writeDocs(rep *service.Report, prof *service.Profiles) error {
	latency, err := rep.Plot()
	if err != nil {
		return err
	}
	dir := filepath.Dir(report.Document)
	return errors.Join(
		report.Write(report.Document, map[string]string{"bench:service": rep.Markdown(report.Made(rep.Redis), prof)}),
		write(filepath.Join(dir, "service-latency.svg"), latency),
		write(filepath.Join(dir, "service-cpu.svg"), []byte(prof.CPU.SVG("Processor time of the whole service: 20 nodes, load generator and Redis clients in one process"))),
		write(filepath.Join(dir, "service-mutex.svg"), []byte(prof.Mutex.SVG("Time that goroutines of the whole service wait for locks, by who holds them"))),
	)
}

func parse(args []string, out io.Writer) (job, error) {
	j := job{Settings: service.Settings{Plan: service.Plan{Limit: 1000, Period: time.Minute, Settling: time.Second}}}
	fs := flag.NewFlagSet("service", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.IntVar(&j.Nodes, "nodes", 20, "`number` of nodes that share the limits, 1 to 200")
	fs.IntVar(&j.Rate, "rate", 50_000, "`requests` per second, on all nodes together")
	fs.IntVar(&j.Keys, "keys", 1_000_000, "`number` of different keys")
	fs.Float64Var(&j.Zipf, "zipf", 0.99, "`exponent` of their popularity")
	fs.Func("limit", "limit of each key, `COUNT/PERIOD` (default 1000/min)", j.setLimit)
	fs.Uint64Var(&j.Seed, "seed", 1, "`seed` of the traffic")
	fs.DurationVar(&j.Warmup, "warmup", 65*time.Second, "`time` under load before anything is counted: floors are earned over a membership's time to live and a fill time")
	seconds := fs.Float64("seconds", 20, "`length` of the measured part")
	fs.Func("only", "of what hybrid is compared with, only what matches this `pattern`; ^$ for nothing", func(text string) (err error) {
		j.Only, err = regexp.Compile(text)
		return err
	})
	fs.IntVar(&j.CompareRate, "compare-rate", 0, "`requests` per second for Exact and redis_rate; 0 = search for the highest that each carries")
	fs.StringVar(&j.profile, "profile", "", "write a profile of the processors to a `file`, made after the measured part")
	fs.StringVar(&j.mutex, "mutex", "", "write a profile of waits for locks to a `file`")
	fs.BoolVar(&j.docs, "docs", false, "write the section of docs/benchmarks.md and its pictures")
	if err := fs.Parse(args); err != nil {
		return j, err
	}
	j.Measured = time.Duration(*seconds * float64(time.Second))
	if j.docs || j.profile != "" || j.mutex != "" {
		j.Profiled = j.Measured
	}
	return j, j.check(fs)
}

func (j *job) check(fs *flag.FlagSet) error {
	switch {
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: only flags are allowed", fs.Arg(0))
	case j.Nodes < 1 || j.Nodes > 200:
		return fmt.Errorf("-nodes %d: allowed 1 to 200", j.Nodes)
	case j.Rate < 100 || j.Rate > 1_000_000:
		return fmt.Errorf("-rate %d: allowed 100 to 1000000", j.Rate)
	case j.CompareRate < 0 || j.CompareRate > 1_000_000:
		return fmt.Errorf("-compare-rate %d: allowed 0 to 1000000", j.CompareRate)
	case j.Keys < 1 || j.Keys > 100_000_000:
		return fmt.Errorf("-keys %d: allowed 1 to 100000000", j.Keys)
	case !(j.Zipf >= 0 && j.Zipf <= 5):
		return fmt.Errorf("-zipf %v: allowed 0 to 5", j.Zipf)
	case j.Warmup < 0 || j.Warmup > time.Hour:
		return fmt.Errorf("-warmup %v: allowed 0s to 1h", j.Warmup)
	case j.Measured < 100*time.Millisecond || j.Measured > time.Hour:
		return fmt.Errorf("-seconds %v: allowed 0.1 to 3600", j.Measured.Seconds())
	}
	return nil
}

// setLimit reads "1000/min" or "50/10s".
func (j *job) setLimit(text string) error {
	count, name, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(count, 10, 32)
	if err != nil || n < 1 {
		return errors.New("allowed COUNT/PERIOD, such as 1000/min or 50/10s")
	}
	periods := map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour}
	period := periods[name]
	if period == 0 {
		if period, err = time.ParseDuration(name); err != nil || period < time.Millisecond || period > 24*time.Hour {
			return errors.New("allowed as PERIOD: s, min, h, or a duration from 1ms to 24h")
		}
	}
	j.Limit, j.Period = n, period
	return nil
}
