package exact_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// panicking is a hook of the client that panics, before or after the command was sent.
type panicking struct{ after bool }

func (panicking) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (p panicking) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p.after {
			_ = next(ctx, cmd)
		}
		panic("secret")
	}
}

func (p panicking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if p.after {
			_ = next(ctx, cmds)
		}
		panic("secret")
	}
}

// A hook that panics makes an operation of unknown outcome, not the end of the process.
func TestAHookThatPanics(t *testing.T) {
	for _, after := range []bool{false, true} {
		rdb := redistest.MiniClient(t)
		rdb.AddHook(panicking{after})
		store, err := exact.New(rdb, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		for _, size := range []int{1, 100} { // alone, and in a pipeline
			batch := make([]*slice.Settle, size)
			for i := range batch {
				batch[i] = &slice.Settle{Account: store.Account("l", string(rune('a'+i))), Rule: exact.PerSecond(10).Rule(),
					Usage: slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 1}}}}
			}
			store.Settle(ctx, batch)
			for _, st := range batch {
				if st.Outcome != slice.Unknown || !errors.Is(st.Err, exact.ErrHook) || st.Err.Error() != "hybrid: a hook of the Redis client panicked: string" {
					t.Fatalf("after %t: %v, %v", after, st.Outcome, st.Err)
				}
			}
		}
		fleet := []*slice.Fleet{{Limiter: "l"}}
		store.Heartbeat(ctx, "me", time.Second, fleet)
		_, marksErr := store.Marks(ctx, 0, 1)
		_, claimErr := store.Claim(ctx, []slice.Mark{{Account: "a", Cost: 1}})
		for what, err := range map[string]error{
			"heartbeat": fleet[0].Err, "leave": store.Leave(ctx, "me", []string{"l"}),
			"mark": store.Mark(ctx, []slice.Mark{{Account: "a", Cost: 1}}), "marks": marksErr, "claim": claimErr,
		} {
			if !errors.Is(err, exact.ErrHook) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
