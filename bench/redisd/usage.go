package redisd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Usage is what a server has done since it was started.
type Usage struct {
	Commands int64         // executed, also by scripts
	Reads    int64         // of a connection: round trips, as long as a caller waits for each
	CPU      time.Duration // of the process
}

// Usage asks the server, which is one command more.
func (s *Server) Usage(ctx context.Context) (Usage, error) {
	info, err := s.info(ctx)
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	var user, sys float64
	for _, field := range []struct {
		name string
		read func(text string) error
	}{
		{"total_commands_processed", integer(&u.Commands)},
		{"total_reads_processed", integer(&u.Reads)},
		{"used_cpu_user", real(&user)},
		{"used_cpu_sys", real(&sys)},
	} {
		if err := field.read(info[field.name]); err != nil {
			return Usage{}, fmt.Errorf("redisd: INFO: %s: %w", field.name, err)
		}
	}
	u.CPU = time.Duration((user + sys) * float64(time.Second))
	return u, nil
}

// Since is what was done after an earlier look, without that look.
func (u Usage) Since(before Usage) Usage {
	return Usage{u.Commands - before.Commands - 1, u.Reads - before.Reads - 1, u.CPU - before.CPU}
}

// Version is the server's.
func (s *Server) Version(ctx context.Context) string {
	info, err := s.info(ctx)
	if err != nil || info["redis_version"] == "" {
		return "unknown"
	}
	return info["redis_version"]
}

func (s *Server) info(ctx context.Context) (map[string]string, error) {
	text, err := s.rdb.Info(ctx, "server", "stats", "cpu").Result()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

func integer(to *int64) func(string) error {
	return func(text string) (err error) {
		*to, err = strconv.ParseInt(text, 10, 64)
		return err
	}
}

func real(to *float64) func(string) error {
	return func(text string) (err error) {
		*to, err = strconv.ParseFloat(text, 64)
		return err
	}
}
