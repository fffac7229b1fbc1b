// Command fleet puts a whole fleet of servers under load and says what came
// of it: how much was admitted against a perfect central limiter, how often
// Redis was asked, what a request waited.
//
//	go run . -nodes 20 -rate 50000 -keys 1000000 -zipf 0.99 -limit 1000/min -seconds 30
//	go run . -procs            each node is an operating-system process
//	go run . -precheck=off     every request asks Redis, for comparison
//
// It uses the Redis of REDIS_URL, else a redis-server that it starts itself
// when one is on PATH, else an embedded one. It exits 1 when the bound on
// over-admission is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	redis.SetLogger(silent{})
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(exitCode(playRole(role)))
	}
	os.Exit(exitCode(runUntilSignal()))
}

func runUntilSignal() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout)
}

// silent is the log of the Redis client: what goes wrong there shows in the
// verdict, and would be written across the line of progress.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// playRole is what a copy of this program does. A signal to the whole group
// reaches its parent too, and that decides what becomes of it, through its
// standard input: a keeper that died of the signal would leave its Redis behind.
func playRole(role string) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	switch role {
	case "node":
		return runNode(context.Background(), os.Stdin, os.Stdout)
	case "redis":
		return keepRedis(os.Stdin, os.Stdout)
	}
	return fmt.Errorf("%s=%q: allowed node or redis", roleVar, role)
}

func exitCode(err error) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "fleet: interrupted")
		return 130
	}
	fmt.Fprintln(os.Stderr, "fleet:", err)
	return 1
}

func run(ctx context.Context, args []string, out io.Writer) error {
	c, err := parseFlags(args, out)
	if err != nil {
		return err
	}
	s, err := openStore()
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Fprintf(out, "%s on %s\n", c.title(), s.Kind)

	m, err := measure(ctx, c, s.URL, newTicker(out))
	if err != nil {
		// What a node says when it is hung up on is not why the run ended.
		return errors.Join(ctx.Err(), err)
	}
	v := judge(c, m)
	if err := v.print(out, c, m); err != nil {
		return err
	}
	return v.err()
}

// measurement is what a run saw.
type measurement struct {
	results []result
	elapsed time.Duration
	cpu     float64 // seconds of Redis; negative if it does not say
}

// measure runs the fleet once.
func measure(ctx context.Context, c config, url string, t *ticker) (m measurement, err error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return m, err
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return m, fmt.Errorf("no answer from Redis at %s: %w", opts.Addr, err)
	}

	// A prefix of its own: a run must not find the accounts of the last one.
	f, err := launchAll(ctx, c, url, fmt.Sprintf("hybrid-fleet-%08x", rand.Uint32()))
	if err != nil {
		return m, err
	}
	defer f.stop()
	defer context.AfterFunc(ctx, f.hangUp)()

	t.say("warming up for %v", c.Warmup)
	if sleep(ctx, c.Warmup); ctx.Err() != nil {
		return m, ctx.Err()
	}
	begin := time.Now().Add(100 * time.Millisecond) // by then every node knows
	if err := f.start(begin); err != nil {
		return m, err
	}
	sleep(ctx, time.Until(begin))
	before, known := cpuSeconds(ctx, rdb)
	m.results, err = f.collect(t.progress(c))
	m.elapsed = time.Since(begin)
	t.say("")
	if err != nil {
		return m, err
	}
	after, _ := cpuSeconds(ctx, rdb)
	m.cpu = after - before
	if !known {
		m.cpu = -1
	}
	return m, nil
}

// ticker is a line that changes in place, on a terminal and nowhere else.
type ticker struct{ terminal *os.File }

func newTicker(out io.Writer) *ticker {
	if f, isFile := out.(*os.File); isFile {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &ticker{f}
		}
	}
	return &ticker{}
}

func (t *ticker) say(format string, args ...any) {
	if t.terminal != nil {
		fmt.Fprintf(t.terminal, "\r\033[K"+format, args...)
	}
}

// progress returns what is to be called with each node's progress.
func (t *ticker) progress(c config) func(node int, p progress) {
	var mu sync.Mutex
	latest := make([]progress, c.Nodes)
	return func(node int, p progress) {
		mu.Lock()
		defer mu.Unlock()
		latest[node] = p
		var sum progress
		for _, p := range latest {
			sum.Offered += p.Offered
			sum.Admitted += p.Admitted
		}
		done := float64(sum.Offered) / (float64(c.Rate) * c.Seconds)
		t.say("%3.0f %%  %d offered, %d admitted", 100*min(done, 1), sum.Offered, sum.Admitted)
	}
}
