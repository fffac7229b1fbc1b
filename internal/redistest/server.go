// Package redistest starts Redis for tests: servers of their own, on free
// loopback ports, gone with the test that asked for them. Only tests import it.
package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server (or redis-sentinel) process.
type Server struct {
	Addr string
	Dir  string // its working directory

	binary string
	args   []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// Start runs redis-server with the given extra arguments until the test ends.
// Without the binary, the test is skipped; if HYBRID_REQUIRE_REDIS=1, it fails.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	need(t, "redis-server")
	for range 10 {
		port := freePort(t)
		s := launch(t, "redis-server", port, append([]string{
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning",
		}, args...)...)
		if s.answers() {
			return s
		}
		s.Kill() // most likely somebody else took the port
	}
	t.Fatal("redistest: redis-server does not start")
	return nil
}

// need skips or fails a test whose binary is missing.
func need(t testing.TB, binary string) {
	t.Helper()
	if _, err := exec.LookPath(binary); err == nil {
		return
	}
	if os.Getenv("HYBRID_REQUIRE_REDIS") == "1" {
		t.Fatalf("redistest: %s is not on PATH, and HYBRID_REQUIRE_REDIS=1", binary)
	}
	t.Skipf("%s is not on PATH: install Redis 6.2 or later (apt install redis, brew install redis) to run this test", binary)
}

func launch(t testing.TB, binary string, port int, args ...string) *Server {
	t.Helper()
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Dir: t.TempDir(), binary: binary, args: args}
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Launch runs the process again, on the same port and in the same directory,
// with further arguments for this time. It does not wait until the server
// answers. The process before it must have been killed.
func (s *Server) Launch(args ...string) error {
	out, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.binary, append(s.args[:len(s.args):len(s.args)], args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, out, out
	if err := cmd.Start(); err != nil {
		_ = out.Close()
		return err
	}
	done := make(chan struct{})
	s.mu.Lock()
	s.cmd, s.done = cmd, done
	s.mu.Unlock()
	go func() {
		_ = cmd.Wait() // killed, as a rule
		_ = out.Close()
		close(done)
	}()
	return nil
}

// Restart runs a killed server again, and waits until it answers. It has the
// data that the killed one has left in its directory.
func (s *Server) Restart(args ...string) error {
	if err := s.Launch(args...); err != nil {
		return err
	}
	if !s.answers() {
		return fmt.Errorf("redistest: %s does not answer after its restart", s.binary)
	}
	return nil
}

// process returns what runs now.
func (s *Server) process() (*exec.Cmd, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd, s.done
}

// Kill ends the process at once. It may be called more than once.
func (s *Server) Kill() {
	cmd, done := s.process()
	_ = cmd.Process.Signal(syscall.SIGCONT) // it may be stopped; an error means it is gone
	_ = cmd.Process.Kill()
	<-done
}

// Stop freezes the process, Continue wakes it.
func (s *Server) Stop() error     { return s.signal(syscall.SIGSTOP) }
func (s *Server) Continue() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) error {
	cmd, _ := s.process()
	return cmd.Process.Signal(sig)
}

// PID is the process id.
func (s *Server) PID() int {
	cmd, _ := s.process()
	return cmd.Process.Pid
}

func (s *Server) log() string { return filepath.Join(s.Dir, "out.log") }

// LogTail returns the last lines of what the process has written.
func (s *Server) LogTail(lines int) string {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Client returns a client with default options, closed when the test ends.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// answers waits until the server answers PING. It is false if the process ends or 5 s have passed.
func (s *Server) answers() bool {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	return s.wait(func() bool { return rdb.Ping(context.Background()).Err() == nil })
}

func (s *Server) wait(ready func() bool) bool {
	_, done := s.process()
	for range 500 {
		select {
		case <-done:
			return false
		case <-time.After(10 * time.Millisecond):
		}
		if ready() {
			return true
		}
	}
	return false
}

// Eventually fails the test unless cond holds within 15 s.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for range 1500 {
		if cond() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("redistest: not within 15 s: %s", what)
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if port > 55000 { // a cluster's bus port is 10000 higher
		return 20000 + port%10000 + os.Getpid()%97
	}
	return port
}

func hostPort(addr string) (string, string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(fmt.Sprintf("redistest: %v", err)) // our own address
	}
	return host, port
}
