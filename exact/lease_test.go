package exact

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// stage is an account on a miniredis whose clock the test holds. t0 is the start of a lease epoch.
type stage struct {
	t    *testing.T
	mini *miniredis.Miniredis
	rdb  *redis.Client
	s    *Store
	rule slice.Rule
	us   int64 // after t0
}

const t0 = 29_933_000 * slice.Epoch

func newStage(t *testing.T, l Limit) *stage {
	st := &stage{t: t, mini: redistest.Mini(t), rule: l.Rule()}
	st.rdb = redis.NewClient(&redis.Options{Addr: st.mini.Addr()})
	t.Cleanup(func() { _ = st.rdb.Close() })
	st.s = newStore(t, st.rdb)
	st.at(0)
	return st
}

// at moves the clock to d after t0. Keys whose time is over expire.
func (st *stage) at(d time.Duration) {
	st.mini.FastForward(max(0, d-time.Duration(st.us)*time.Microsecond))
	st.us = d.Microseconds()
	st.mini.SetTime(time.UnixMicro(t0 + st.us))
}

func (st *stage) settle(u slice.Usage) slice.Grant {
	st.t.Helper()
	e := &slice.Settle{Account: "acct", Rule: st.rule, Usage: u}
	st.s.Settle(context.Background(), []*slice.Settle{e})
	if e.Outcome != slice.Ran {
		st.t.Fatal(e.Outcome, e.Err)
	}
	return e.Grant
}

func (st *stage) want(g slice.Grant, used float64, lent int64) {
	st.t.Helper()
	if g.Used != used || g.Lent != lent {
		st.t.Fatalf("used %v, lent %d; want %v, %d", g.Used, g.Lent, used, lent)
	}
}

func wish(n int64) slice.Usage { return slice.Usage{Want: n, Least: 1, Unit: 1, Divisor: 1} }

// 1 per second, burst 100: a lease holds its tokens against the burst to the end of the epoch after its own.
func TestLeaseHoldsForTwoEpochs(t *testing.T) {
	st := newStage(t, PerSecond(1).WithBurst(100))
	st.at(50 * time.Second)
	g := st.settle(wish(90))
	st.want(g, 90, 90)
	if g.Life != 70_000_000 || g.Tag.Epoch != 29_933_000 {
		t.Fatalf("%+v", g)
	}
	if ttl := st.rdb.PTTL(context.Background(), "acct").Val(); ttl != 160*time.Second { // 90 s to drain, 70 s of the lease
		t.Fatal(ttl)
	}
	st.at(60 * time.Second)
	st.want(st.settle(slice.Usage{}), 90, 90)
	st.at(120*time.Second - time.Microsecond)
	st.want(st.settle(slice.Usage{}), 90, 90)
	st.at(120 * time.Second) // forgotten; its tokens come back by refill from here on
	st.want(st.settle(slice.Usage{}), 90, 0)
	st.at(130 * time.Second)
	st.want(st.settle(slice.Usage{}), 80, 0)
}

// A gap over many epochs drains up to the drop with the lease, after it without.
func TestLongGapDrainsBeforeDrop(t *testing.T) {
	st := newStage(t, PerSecond(1).WithBurst(100))
	st.want(st.settle(wish(90)), 90, 90)
	st.at(200 * time.Second)
	st.want(st.settle(slice.Usage{}), 10, 0)
}

func TestRenewalMovesTheLease(t *testing.T) {
	st := newStage(t, PerDay(1).WithBurst(100))
	st.rule.Rate = 1e-12 // nothing comes back
	tag := st.settle(wish(90)).Tag
	st.at(110 * time.Second)
	g := st.settle(slice.Usage{Tag: tag, Spent: 30, Returned: 20, Held: 40})
	if g.Dropped || g.Lent != 40 || g.Used < 69.99 || g.Used > 70 || g.Tag.Epoch != tag.Epoch+1 {
		t.Fatalf("%+v", g)
	}
	st.at(179 * time.Second)
	if g := st.settle(slice.Usage{}); g.Lent != 40 {
		t.Fatalf("%+v", g)
	}
	st.at(180 * time.Second)
	if g := st.settle(slice.Usage{Tag: g.Tag, Spent: 5, Held: 35}); !g.Dropped || g.Lent != 0 || g.Used > 70 {
		t.Fatalf("%+v", g)
	}
}

// What no lease covers is charged: after Redis lost its data, or to a second node with the same tag.
func TestUncoveredIsCharged(t *testing.T) {
	st := newStage(t, PerDay(1).WithBurst(100))
	st.rule.Rate = 1e-12
	tag := st.settle(wish(50)).Tag
	st.mini.FlushAll()
	st.want(st.settle(slice.Usage{Tag: tag, Spent: 10, Held: 40}), 50, 40)
	st.want(st.settle(slice.Usage{Tag: tag, Spent: 10, Held: 40}), 60, 40) // 40 are covered, 10 are not
	st.want(st.settle(slice.Usage{Tag: slice.Tag{Epoch: tag.Epoch + 1}, Spent: 1, Held: 1}), 62, 41)
}

func TestChargesAndDebt(t *testing.T) {
	st := newStage(t, PerDay(1).WithBurst(100))
	st.rule.Rate = 1e-12
	st.want(st.settle(slice.Usage{Charged: 250}), 200, 0) // debt ends at twice the burst
	st.want(st.settle(slice.Usage{Charged: -150}), 50, 0) // a refund
	st.want(st.settle(slice.Usage{Fallback: 30}), 80, 0)  // what was admitted without Redis,
	st.want(st.settle(slice.Usage{Fallback: 30}), 100, 0) // but never beyond the burst
	st.want(st.settle(slice.Usage{Charged: 20}), 120, 0)  // debt
	st.want(st.settle(slice.Usage{Fallback: 30}), 120, 0) // does not become less by it
	st.want(st.settle(slice.Usage{Charged: -1000}), 0, 0) // and a refund ends at 0
	st.want(st.settle(slice.Usage{Charged: 0.125}), .125, 0)
}

// What a denied request took of another limit comes back, but for what has drained
// since: else it would be there twice.
func TestWhatIsUndoneComesBackOnce(t *testing.T) {
	st := newStage(t, PerMinute(100))
	now := st.settle(slice.Usage{Needs: []slice.Need{{Cost: 90, Count: 1}}}).Now
	st.at(30 * time.Second) // 50 have drained
	st.want(st.settle(slice.Usage{Return: 90, ReturnAt: now}), 0, 0)
	st.want(st.settle(slice.Usage{Charged: 60}), 60, 0)
	st.want(st.settle(slice.Usage{Charged: 10, Return: 90, ReturnAt: now}), 30, 0)
	st.want(st.settle(slice.Usage{Return: 20, ReturnAt: now}), 30, 0)              // nothing is left of them
	st.want(st.settle(slice.Usage{Return: 20, ReturnAt: now + 60_000_000}), 10, 0) // a clock that is behind
}

// In a window nothing drains, and what was taken in one that is over is gone with it.
func TestWhatIsUndoneStaysInItsWindow(t *testing.T) {
	st := newStage(t, Window(100, 10*time.Second))
	g := st.settle(slice.Usage{Needs: []slice.Need{{Cost: 90, Count: 1}}})
	back := slice.Usage{Tag: slice.Tag{Window: g.Tag.Window}, Return: 40, ReturnAt: g.Now}
	st.want(st.settle(back), 50, 0)
	st.at(10 * time.Second)
	st.want(st.settle(slice.Usage{Charged: 45}), 45, 0)
	st.want(st.settle(back), 45, 0)
}

func TestNeedsInOrder(t *testing.T) {
	st := newStage(t, PerDay(1).WithBurst(100))
	st.rule.Rate = 1e-12
	u := wish(50)
	u.Needs = []slice.Need{{Cost: 30, Count: 2}, {Cost: 50, Count: 1}, {Cost: 15, Count: 5}, {Cost: 1, Count: 3}}
	g := st.settle(u)
	if fmt.Sprint(g.Admitted) != "[2 0 2 3]" || g.Granted != 0 { // a refusal grants nothing
		t.Fatalf("%+v", g)
	}
	st.want(g, 93, 0)
}

func TestGrants(t *testing.T) {
	for _, c := range []struct {
		want, least, unit, divisor, granted int64
	}{
		{1000, 1, 1, 1, 100}, {10, 1, 1, 1, 10}, {1000, 1, 1, 8, 12}, {1000, 1, 5, 8, 10}, {1000, 13, 1, 8, 0},
		{1000, 12, 5, 8, 0}, {7, 1, 10, 1, 0}, {1 << 53, 1, 1, 1 << 53, 0},
	} {
		st := newStage(t, PerDay(100))
		if g := st.settle(slice.Usage{Want: c.want, Least: c.least, Unit: c.unit, Divisor: c.divisor}); g.Granted != c.granted {
			t.Errorf("%+v: %d", c, g.Granted)
		}
	}
	st := newStage(t, PerDay(slice.MaxTokens))
	if g := st.settle(wish(slice.MaxTokens)); g.Granted != slice.MaxSlice {
		t.Error(g.Granted)
	}
}

// A window's slices end with it, and what an old window used does not count in the next.
func TestWindowLeases(t *testing.T) {
	st := newStage(t, Window(100, 10*time.Second))
	st.at(4 * time.Second)
	g := st.settle(wish(60))
	if g.Life != 6_000_000 || g.Tag.Window != (t0+4_000_000)/10_000_000 {
		t.Fatalf("%+v", g)
	}
	st.at(11 * time.Second)
	after := st.settle(slice.Usage{Tag: g.Tag, Returned: 60, Charged: 5, Fallback: 5, Needs: []slice.Need{{Cost: 1, Count: 200}}})
	if !after.Dropped || after.Admitted[0] != 100 {
		t.Fatalf("%+v", after)
	}
	st.at(21 * time.Second)
	if g := st.settle(slice.Usage{Tag: slice.Tag{Window: after.Tag.Window}, Charged: 5}); g.Dropped || g.Used != 0 {
		t.Fatalf("%+v", g) // no slice was reported; the charge is another window's
	}
	st.want(st.settle(slice.Usage{Charged: 5}), 5, 0)
}

// A window longer than two epochs: leases are forgotten within it, what was used is not.
func TestLongWindow(t *testing.T) {
	st := newStage(t, Window(100, 10*time.Minute))
	st.want(st.settle(wish(60)), 60, 60)
	st.at(120 * time.Second)
	st.want(st.settle(slice.Usage{}), 60, 0)
	st.at(599 * time.Second)
	st.want(st.settle(slice.Usage{}), 60, 0)
}

func TestTimeToLive(t *testing.T) {
	ttl := func(st *stage) time.Duration { return st.rdb.PTTL(context.Background(), "acct").Val() }
	st := newStage(t, PerSecond(10).WithBurst(100))
	st.settle(slice.Usage{Charged: 50})
	if got := ttl(st); got != 5*time.Second {
		t.Error("half full:", got)
	}
	st.settle(slice.Usage{Charged: 1e6})
	if got := ttl(st); got != 20*time.Second {
		t.Error("in debt:", got)
	}
	st.rule = PerSecond(1000).WithBurst(100).Rule() // a writer with a faster limit, beyond its burst
	st.settle(slice.Usage{Charged: 1})
	if got := ttl(st); got != 20*time.Second {
		t.Error("shortened by a writer with a lower limit:", got)
	}
	st.settle(slice.Usage{Charged: -150})
	if got := ttl(st); got != 50*time.Millisecond {
		t.Error("within its burst again:", got)
	}

	st = newStage(t, PerSecond(10).WithBurst(100))
	st.settle(slice.Usage{Charged: 50})
	st.at(-30 * time.Second) // the clock steps back: the account stands still for 30 s
	st.settle(slice.Usage{Charged: 10})
	if got := ttl(st); got != 36*time.Second {
		t.Error("after a step back:", got)
	}

	st = newStage(t, Per(1_000_000, time.Microsecond))
	st.settle(slice.Usage{Charged: 1})
	if got := ttl(st); got != time.Millisecond {
		t.Error("at least 1 ms:", got)
	}
	st = newStage(t, Per(1, maxPeriod).WithBurst(slice.MaxTokens))
	st.settle(slice.Usage{Charged: slice.MaxTokens})
	if got := ttl(st); got != 9e12*time.Millisecond {
		t.Error("capped:", got)
	}
}

// Redis takes the longest TTL there is.
func TestLongestTimeToLiveOnRedis(t *testing.T) {
	s := newStore(t, redistest.Start(t).Client(t))
	if d := take(t, s, "k", Per(1, maxPeriod).WithBurst(slice.MaxTokens), slice.MaxTokens); !d.Allowed {
		t.Errorf("%+v", d)
	}
	if d := take(t, s, "k", Per(1, maxPeriod).WithBurst(slice.MaxTokens), 1); d.Allowed || d.RetryAfter <= 0 || d.RetryAfter == slice.Never {
		t.Errorf("%+v", d)
	}
}

// Each judges by its own limit.
func TestRollingChangeOfLimit(t *testing.T) {
	st := newStage(t, PerDay(1_000_000))
	st.rule.Rate = 1e-12
	st.settle(slice.Usage{Needs: []slice.Need{{Cost: 500, Count: 1}}})
	high, low := st.rule, slice.Rule{Burst: 100, Rate: 1e-12}
	st.rule = low
	if g := st.settle(slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 1}}}); g.Admitted[0] != 0 {
		t.Fatalf("%+v", g)
	}
	st.rule = high
	if g := st.settle(slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 1}}}); g.Admitted[0] != 1 {
		t.Fatalf("%+v", g)
	}
}
