package redisd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server process that keeps nothing on disk.
type Server struct {
	Addr string

	dir string
	cmd *exec.Cmd
	rdb *redis.Client
}

// Start runs a server until Stop. It fails with exec.ErrNotFound without the
// binary on PATH.
func Start() (*Server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redisd: install Redis 6.2 or later: %w", err)
	}
	// Another program may take the free port first: then the next one.
	for range 3 {
		var s *Server
		if s, err = start(binary); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func start(binary string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hybrid-bench-")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir}
	s.cmd = exec.Command(binary, "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	s.rdb = redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.rdb.Close(), os.RemoveAll(dir))
	}
	if err := s.answers(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("redisd: redis-server does not answer: %w", err)
	}
	return s, nil
}

func (s *Server) answers() error {
	var err error
	for range 500 {
		var c net.Conn
		if c, err = net.Dial("tcp", s.Addr); err == nil { // the client would log that it cannot
			_ = c.Close()
			if err = s.rdb.Ping(context.Background()).Err(); err == nil {
				return nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// Stop ends the process, and waits for that.
func (s *Server) Stop() {
	_ = s.rdb.Close()
	_ = s.cmd.Process.Kill() // it stores nothing that is worth a slow end
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
