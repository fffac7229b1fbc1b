package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func TestLinkTakesItsTime(t *testing.T) {
	InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) {
		link, ctx := NewLink(mini.Dial), context.Background()
		rdb := link.Client(t)
		must(t, rdb.Set(ctx, "a", 1, time.Minute).Err()) // a connection is made
		for _, rtt := range []time.Duration{600 * time.Microsecond, time.Second} {
			start := time.Now()
			must(t, rdb.Get(ctx, "a").Err())
			if took := time.Since(start); took != rtt {
				t.Errorf("a call took %v, want %v", took, rtt)
			}
			link.RTT(func() time.Duration { return time.Second })
		}
		time.Sleep(time.Minute)
		if n := rdb.Exists(ctx, "a").Val(); n != 0 {
			t.Error("a key outlives the bubble's clock")
		}
	})
}

// A call that fails is executed or not, as its fault says; the next one is well.
func TestLinkBreaks(t *testing.T) {
	InBubble(t, func(t *testing.T, mini *miniredis.Miniredis) {
		link, ctx := NewLink(mini.Dial), context.Background()
		rdb := link.Client(t)
		rdb.Options().MaxRetries = 0 // or nobody would see that a call fails
		incr := func() error { return rdb.Incr(ctx, "hybrid:{}a1:3:api:k").Err() }
		want := map[Fault]string{Refused: "1", CutBefore: "1", CutAfter: "2", Swallowed: "2"}
		for fault, ran := range want {
			mini.FlushAll()
			link.Inject(fault)
			must(t, rdb.Ping(ctx).Err())
			failed, well := incr(), incr()
			if got, _ := mini.Get("hybrid:{}a1:3:api:k"); failed == nil || well != nil || got != ran {
				t.Errorf("fault %d: %v, then %v, and %s were executed, want %s", fault, failed, well, got, ran)
			}
		}
		link.Cut(true)
		if err := incr(); err == nil {
			t.Error("a link that is cut answers")
		}
		link.Cut(false)
		must(t, incr())
		if link.Hits() != len(want) || link.Waits() || link.Sound() {
			t.Errorf("%d faults met, %t, %t", link.Hits(), link.Waits(), link.Sound())
		}
	})
}
