package chaos

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// faults are those that each need a server of its own.
var faults = []fault{
	{
		name:   "killed, restarted empty",
		begin:  func(r *run) error { r.server.Kill(); return nil },
		end:    func(r *run) error { return r.server.Restart() },
		expect: expectation{down: always, losses: 1},
	},
	{
		name:   "killed, restarted with its data",
		args:   []string{"--appendonly", "yes", "--appendfsync", "everysec"},
		begin:  func(r *run) error { r.server.Kill(); return nil },
		end:    func(r *run) error { return r.server.Restart() },
		expect: expectation{down: always},
	},
	{
		name:   "stopped",
		begin:  func(r *run) error { return r.server.Stop() },
		end:    func(r *run) error { return r.server.Continue() },
		expect: expectation{down: always},
	},
	{
		name:   "scripts flushed",
		begin:  flushScripts,
		end:    func(*run) error { return nil },
		expect: expectation{down: never},
	},
	{
		name: "clients paused",
		begin: func(r *run) error {
			return r.do("client", "pause", lasting(1500*time.Millisecond).Milliseconds(), "all")
		},
		end:    func(*run) error { return nil },
		expect: expectation{down: always},
	},
	{
		name:   "out of memory",
		args:   []string{"--maxmemory-policy", "noeviction"},
		begin:  func(r *run) error { return r.do("config", "set", "maxmemory", 1) },
		end:    func(r *run) error { return r.do("config", "set", "maxmemory", 0) },
		expect: expectation{down: always},
	},
	{
		name:   "evicts everything",
		args:   []string{"--maxmemory-policy", "allkeys-lru"},
		begin:  evictAll,
		end:    func(*run) error { return nil },
		expect: expectation{down: never, losses: 1, byPolicy: 0.01},
	},
	{
		name:   "read-only replica",
		begin:  func(r *run) error { return r.do("replicaof", "127.0.0.1", 1) },
		end:    func(r *run) error { return r.do("replicaof", "no", "one") },
		expect: expectation{down: always},
	},
	{
		name:    "loading",
		args:    []string{"--appendonly", "yes"},
		prepare: fill,
		begin: func(r *run) error {
			r.server.Kill()
			return r.server.Launch("--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024")
		},
		end:    func(*run) error { return nil },
		expect: expectation{down: always},
	},
	{
		name:   "no permission",
		begin:  func(r *run) error { return r.do("acl", "setuser", user, "-@scripting") },
		end:    func(r *run) error { return r.do("acl", "setuser", user, "+@all") },
		expect: expectation{down: always},
	},
	{
		name:   "busy with a script",
		args:   []string{"--lua-time-limit", "5"},
		begin:  keepBusy,
		end:    func(r *run) error { return r.do("script", "kill") },
		expect: expectation{down: always},
	},
	{
		name: "too many clients",
		begin: func(r *run) error {
			if err := r.do("config", "set", "maxclients", 1); err != nil {
				return err
			}
			return r.do("client", "kill", "type", "normal", "skipme", "yes")
		},
		end:    func(r *run) error { return r.do("config", "set", "maxclients", 1000) },
		expect: expectation{down: always},
	},
}

func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) { runFault(t, f) })
	}
}

// flushScripts makes the server forget its scripts again and again.
func flushScripts(r *run) error {
	for range 20 {
		if err := r.do("script", "flush"); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// evictAll leaves the server so little memory for a moment that it evicts all accounts.
func evictAll(r *run) error {
	if err := r.do("config", "set", "maxmemory", 1); err != nil {
		return err
	}
	return r.do("config", "set", "maxmemory", 0)
}

// fill gives the server something to load.
func fill(r *run) error {
	pipe := r.admin.Pipeline()
	for i := range 2500 {
		pipe.Set(context.Background(), "filler"+string(rune('a'+i%26))+time.Duration(i).String(), "0123456789", 0)
	}
	_, err := pipe.Exec(context.Background())
	return err
}

// keepBusy runs a script that does not end by itself.
func keepBusy(r *run) error {
	rdb := redis.NewClient(&redis.Options{Addr: r.server.Addr, MaxRetries: -1, ReadTimeout: time.Minute})
	r.t.Cleanup(func() { _ = rdb.Close() })
	ended := make(chan error, 1)
	go func() { ended <- rdb.Eval(context.Background(), "while true do end", nil).Err() }()
	select {
	case err := <-ended:
		return errors.Join(errors.New("the script ended"), err)
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}
