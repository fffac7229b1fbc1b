package chaos

import (
	"context"
	"fmt"
	"testing"
)

// refusals are servers that answer, but with errors.
var refusals = []fault{
	{
		name:   "out of memory",
		args:   []string{"--maxmemory-policy", "noeviction"},
		begin:  func(r *run) error { return r.do("config", "set", "maxmemory", 1) },
		end:    func(r *run) error { return r.do("config", "set", "maxmemory", 0) },
		brief:  true,
		expect: expectation{down: always},
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
			return r.server.Launch("--key-load-delay", "400", "--loading-process-events-interval-bytes", "1024")
		},
		end:    func(*run) error { return nil },
		expect: expectation{down: always},
	},
	{
		name:   "no permission",
		begin:  func(r *run) error { return r.do("acl", "setuser", user, "-@scripting") },
		end:    func(r *run) error { return r.do("acl", "setuser", user, "+@all") },
		brief:  true,
		expect: expectation{down: always},
	},
}

// A store that refuses is a store that fails, and no denial: the policy decides.
func TestRefusalsAreFailures(t *testing.T) { runFaults(t, refusals) }

// fill gives the server so much to load that it takes a while.
func fill(r *run) error {
	pipe := r.admin.Pipeline()
	for i := range 2500 {
		pipe.Set(context.Background(), fmt.Sprintf("filler%d", i), "0123456789", 0)
	}
	_, err := pipe.Exec(context.Background())
	return err
}
