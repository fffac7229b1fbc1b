package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// store is the Redis of a run.
type store struct {
	URL  string
	Kind string // for the reader
	stop func()
}

// openStore uses REDIS_URL, else a redis-server of its own, else an embedded one.
func openStore() (*store, error) {
	if url := os.Getenv("REDIS_URL"); url != "" {
		if _, err := redis.ParseURL(url); err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		return &store{URL: url, Kind: "the Redis of REDIS_URL", stop: func() {}}, nil
	}
	if _, err := exec.LookPath("redis-server"); err == nil {
		return openServer()
	}
	m, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	m.ClockTTL(true)
	return &store{URL: "redis://" + m.Addr(), Kind: "embedded miniredis (no redis-server on PATH)", stop: m.Close}, nil
}

// openServer has a copy of this program keep a redis-server, so that it ends
// even if this process is killed.
func openServer() (*store, error) {
	cmd, stdin, stdout, err := startCopy("redis")
	if err != nil {
		return nil, err
	}
	stop := func() {
		stdin.Close()
		_ = cmd.Wait() // it was told to end; how it does is of no use
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		stop()
		return nil, errors.New("redis-server did not start")
	}
	return &store{URL: strings.TrimSpace(url), Kind: "a private redis-server", stop: stop}, nil
}

// keepRedis is the role of that copy: it prints the server's URL and ends the
// server, by its process, when orders ends.
func keepRedis(orders io.Reader, out io.Writer) error {
	dir, err := os.MkdirTemp("", "hybrid-fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Another program may take the free port first: then the next one.
	for range 3 {
		var server *exec.Cmd
		var port int
		if server, port, err = startRedis(dir); err != nil {
			continue
		}
		fmt.Fprintf(out, "redis://127.0.0.1:%d\n", port)
		_, _ = io.Copy(io.Discard, orders)
		endRedis(server)
		return nil
	}
	return err
}

func startRedis(dir string) (*exec.Cmd, int, error) {
	port, err := freePort()
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	if err := waitForRedis(port); err != nil {
		endRedis(cmd)
		return nil, 0, err
	}
	return cmd, port, nil
}

// waitForRedis returns when the server answers, which takes it some 10 ms.
func waitForRedis(port int) error {
	rdb := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for {
		err := rdb.Ping(ctx).Err()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func endRedis(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it stores nothing that is worth a slow end
	_ = cmd.Wait()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// cpuSeconds is the processor time that Redis has used; false if it does not say.
func cpuSeconds(ctx context.Context, rdb *redis.Client) (float64, bool) {
	info, err := rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, false
	}
	var sum float64
	found := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_user" && name != "used_cpu_sys" {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum += v
			found++
		}
	}
	return sum, found == 2
}
