package chaos

import (
	"context"
	"fmt"
	"testing"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// restarts make a server forget the scripts, and once all else, too.
var restarts = []fault{
	{
		name:   "scripts flushed",
		begin:  flushScripts,
		end:    func(*run) error { return nil },
		brief:  true,
		expect: expectation{down: never},
	},
	{
		name:   "killed, restarted empty",
		begin:  func(r *run) error { r.server.Kill(); return nil },
		end:    func(r *run) error { return r.server.Restart() },
		brief:  true,
		expect: expectation{down: always, undialable: true, losses: 1},
	},
	{
		name:   "killed, restarted with its data",
		args:   []string{"--appendonly", "yes", "--appendfsync", "everysec"},
		begin:  func(r *run) error { r.server.Kill(); return nil },
		end:    func(r *run) error { return r.server.Restart() },
		expect: expectation{down: always, undialable: true},
	},
}

// No error reaches a caller while scripts are flushed and servers restart.
func TestFlushAndRestart(t *testing.T) { runFaults(t, restarts) }

// A pipeline of calls meets a server without the script: each is sent again with
// it, and none runs twice.
func TestPipelineAfterAFlush(t *testing.T) {
	ctx, s := context.Background(), redistest.Start(t)
	rdb := s.Client(t)
	store, err := exact.New(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	rule := slice.Rule{Burst: 10, Rate: 1e-9}
	var batch []*slice.Settle
	for i := range 300 { // 64 accounts in a call: a pipeline of five
		batch = append(batch, &slice.Settle{Account: store.Account("api", fmt.Sprint(i)), Rule: rule,
			Usage: slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 1}}}})
	}
	for round := range 3 {
		if err := rdb.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		store.Settle(ctx, batch)
		for i, st := range batch {
			if st.Outcome != slice.Ran || st.Grant.Admitted[0] != 1 || int(st.Grant.Used+0.5) != round+1 {
				t.Fatalf("round %d, account %d: %v, %v, %+v", round, i, st.Outcome, st.Err, st.Grant)
			}
		}
	}
}
