package chaos

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// faults are those that each need a server of its own.
var faults = []fault{
	{
		name:   "stopped",
		begin:  func(r *run) error { return r.server.Stop() },
		end:    func(r *run) error { return r.server.Continue() },
		expect: expectation{down: always},
	},
	{
		name:   "clients paused",
		begin:  func(r *run) error { return r.do("client", "pause", lasting(shortFault).Milliseconds(), "all") },
		end:    func(*run) error { return nil },
		expect: expectation{down: always},
	},
	{
		name:   "evicts everything",
		args:   []string{"--maxmemory-policy", "allkeys-lru"},
		begin:  evictAll,
		end:    func(*run) error { return nil },
		brief:  true,
		expect: expectation{down: never, losses: 1, byPolicy: 0.01},
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
			return r.dropConnections()
		},
		end:    func(r *run) error { return r.do("config", "set", "maxclients", 1000) },
		expect: expectation{down: always},
	},
}

func TestFaults(t *testing.T) { runFaults(t, faults) }

// Under Balanced, floors go on through an outage as they did before it.
func TestStoppedWithFloors(t *testing.T) {
	if brief() {
		t.Skip("not in a brief selection")
	}
	f := faults[0]
	f.name = "stopped, with floors"
	f.fleet = func(s *fleetSetup) { s.accuracy = hybrid.Balanced }
	f.calm = 7 * time.Second // a registration must be one membership TTL old, and floors are earned then
	o := runFault(t, f)
	before, during := 0, 0
	for i := range o.answers {
		switch a := &o.answers[i]; {
		case a.path != hybrid.PathFloor:
		case a.end() < o.began:
			before++
		case a.at > o.began && a.end() < o.ended:
			during++
		}
	}
	t.Logf("%d answers by floors before the outage, %d in it", before, during)
	if before < 20 || during < 20 {
		t.Errorf("%d answers by floors before the outage, %d in it", before, during)
	}
}

func TestNetworkFaults(t *testing.T) { runFaults(t, networkFaults) }

func runFaults(t *testing.T, faults []fault) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if brief() && !f.brief {
				t.Skip("not in a brief selection")
			}
			runFault(t, f)
		})
	}
}

// brief is whether only a selection is run.
func brief() bool { return raceDetector || testing.Short() }

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
