package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// The test binary plays the roles of the program: a node, the keeper of Redis
// and, so that a test may kill it, the whole fleet.
func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); role {
	case "":
		os.Exit(m.Run())
	case "fleet":
		os.Unsetenv(roleVar)
		os.Exit(exitCode(runUntilSignal()))
	default:
		os.Exit(exitCode(playRole(role)))
	}
}

// Two nodes, together on one hot key and alone on cold ones. A long timeout
// keeps a busy test machine from looking like a Redis that is away.
const shortRun = "-nodes 2 -rate 2000 -keys 50 -zipf 1.1 -limit 100/min -seconds 1.5 -warmup 200ms -timeout 2s"

func TestShortRuns(t *testing.T) {
	for _, flags := range []string{"", "-procs", "-accuracy strict", "-precheck=off", "-procs -precheck=off"} {
		t.Run(flags, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), strings.Fields(shortRun+" "+flags), &out); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			t.Log("\n" + out.String())
			for _, row := range []string{"offered", "admitted", "over-admission", "Redis operations", "blocked", "p99.9", "Redis CPU"} {
				if !strings.Contains(out.String(), row) {
					t.Errorf("the output lacks %q", row)
				}
			}
			if strings.ContainsAny(out.String(), "\r\033") {
				t.Error("the output holds control codes, though it is no terminal")
			}
		})
	}
}

// Slices answer most requests of a run without Redis, and take nothing away.
func TestSlicesCutRoundTrips(t *testing.T) {
	s, err := openStore()
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	verdictOf := func(flags string) *verdict {
		c, err := parseFlags(strings.Fields(shortRun+" "+flags), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		m, err := measure(t.Context(), c, s.URL, newTicker(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		v := judge(c, m)
		if err := v.err(); err != nil {
			t.Error(err)
		}
		if r := v.outcome.Ratio(); r < 0.9 {
			t.Errorf("%s: only %.1f %% of the ideal was admitted", flags, 100*r)
		}
		if v.outcome.Offered < 2500 || v.outcome.Offered > 3500 {
			t.Errorf("%s: %d offered, want about 3000", flags, v.outcome.Offered)
		}
		return v
	}
	with, without := verdictOf(""), verdictOf("-precheck=off")
	if with.sum.Operations*2 > without.sum.Operations {
		t.Errorf("%d operations with slices, %d without", with.sum.Operations, without.sum.Operations)
	}
}

// Over-admission is found when it is there, and blamed on the right key.
func TestVerdict(t *testing.T) {
	c := config{Limit: quota{10, time.Minute}, Accuracy: dial(hybrid.Balanced)}
	node := func(key uint32, n int, path hybrid.Path, took time.Duration) result {
		var r result
		for i := range n {
			r.Requests = append(r.Requests, request{Key: key, Path: path, Allowed: true, At: int64(i), Took: took})
		}
		return r
	}
	for _, s := range []struct {
		name  string
		nodes []result
		wrong string
	}{
		{"at the bound", []result{node(1, 6, hybrid.PathSlice, 0), node(1, 5, hybrid.PathFloor, 0), node(2, 11, hybrid.PathExact, 0)}, ""},
		{"one beyond", []result{node(1, 5, hybrid.PathSlice, 0), node(2, 6, hybrid.PathSlice, 0), node(2, 6, hybrid.PathExact, 0)}, "user:2"},
		{"a call that took a refill", []result{node(1, 12, hybrid.PathExact, 6*time.Second)}, ""},
		{"the failure policy", []result{node(1, 30, hybrid.PathFallback, 0)}, ""},
	} {
		err := judge(c, measurement{results: s.nodes}).err()
		if (err == nil) != (s.wrong == "") || err != nil && !strings.Contains(err.Error(), s.wrong) {
			t.Errorf("%s: got %v, want %q", s.name, err, s.wrong)
		}
	}
	if judge(c, measurement{results: []result{{Stats: hybrid.LimiterStats{Operations: 1}}}}).err() == nil {
		t.Error("more operations than requests were accepted")
	}
}

// The server that a copy keeps is gone when the copy's input ends.
func TestRedisEndsWithItsKeeper(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		skipOrFail(t, "redis-server is not on PATH: apt-get install redis-server")
	}
	s, err := openServer()
	if err != nil {
		t.Fatal(err)
	}
	opts, err := redis.ParseURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", opts.Addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	s.stop()
	if conn, err := net.Dial("tcp", opts.Addr); err == nil {
		conn.Close()
		t.Error("redis-server still accepts connections")
	}
}

func skipOrFail(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("HYBRID_REQUIRE_REDIS") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// However the program ends, no node and no Redis is left behind: all of them
// share its standard error, which ends when the last of them does.
func TestNoOrphans(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	for _, sig := range []os.Signal{os.Interrupt, os.Kill} {
		t.Run(sig.String(), func(t *testing.T) {
			stderr, end, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stderr.Close()
			cmd := exec.Command(os.Args[0], strings.Fields(shortRun+" -procs -seconds 60")...)
			cmd.Env = append(os.Environ(), roleVar+"=fleet")
			cmd.Stderr = end
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			end.Close()
			if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
				t.Fatalf("the fleet did not start: %v", err)
			}
			time.Sleep(time.Second) // into the traffic
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if err := stderr.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(stderr)
			if err != nil {
				t.Errorf("10 s later, something of the fleet still runs: %v", err)
			}
			_ = cmd.Wait()
			if sig == os.Interrupt && (cmd.ProcessState.ExitCode() != 130 || !strings.Contains(string(said), "interrupted")) {
				t.Errorf("exit code %d, %q", cmd.ProcessState.ExitCode(), said)
			}
		})
	}
}
