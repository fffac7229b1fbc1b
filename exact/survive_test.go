package exact

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// What an account survives, told on the script itself.

// elapse lets time pass for an account: it drains, its leases age, and its key
// expires. It returns the tag of leases that were granted when it was written.
func elapse(t testing.TB, rdb *redis.Client, account string, d time.Duration) (written slice.Tag) {
	t.Helper()
	ctx := context.Background()
	left := rdb.PTTL(ctx, account).Val()
	if left < 0 {
		return slice.Tag{}
	}
	a := ledger.Parse(rdb.Get(ctx, account).Val())
	a.At -= d.Microseconds()
	must(t, rdb.Set(ctx, account, a.Text(), redis.KeepTTL).Err())
	must(t, rdb.PExpire(ctx, account, left-d).Err())
	return slice.Tag{Epoch: a.At / slice.Epoch}
}

// settleAs executes one settle of an account by a rule.
func settleAs(t testing.TB, s *Store, account string, rule slice.Rule, u slice.Usage) slice.Grant {
	t.Helper()
	e := &slice.Settle{Account: account, Rule: rule, Usage: u}
	s.Settle(context.Background(), []*slice.Settle{e})
	if e.Outcome != slice.Ran {
		t.Fatal(e.Outcome, e.Err)
	}
	return e.Grant
}

// takeAll takes what a limit has to give, and returns how much that was.
func takeAll(t testing.TB, s *Store, key string, l Limit) (n int64) {
	for take(t, s, key, l, 1).Allowed {
		n++
	}
	return n
}

// 60 per minute are used up, then others go on with a burst of 10 at the same
// rate, and after second 80 the first limit is back: in 80 s no more than 140.
// The key used to expire in between, with 40 of them: 179.
func TestALowerLimitKeepsWhatAHigherOneUsed(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, high := newStore(t, rdb), PerMinute(60)
		account := s.Account("api", "k")
		admitted := takeAll(t, s, "k", high)
		for range 59 {
			elapse(t, rdb, account, time.Second)
			admitted += takeAll(t, s, "k", high.WithBurst(10))
		}
		elapse(t, rdb, account, 21*time.Second)
		admitted += takeAll(t, s, "k", high)
		if admitted < 138 || admitted > 140 {
			t.Errorf("%d were admitted, 140 allowed", admitted)
		}
		elapse(t, rdb, account, time.Minute)
		if n := rdb.Exists(context.Background(), account).Val(); n != 0 {
			t.Error("the key is still there when all has drained")
		}
	})
}

// The same with a lease that the lower limit renews: what is lent does not drain,
// and the key lives until it could have, after the lease.
func TestALowerLimitRenewsALeaseOfAHigherOne(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, high, low := newStore(t, rdb), PerHour(3600), PerHour(3600).WithBurst(100)
		account := s.Account("api", "k")
		settleAs(t, s, account, high.Rule(), wish(3600))
		for range 10 {
			tag := elapse(t, rdb, account, time.Minute)
			g := settleAs(t, s, account, low.Rule(), slice.Usage{Tag: tag, Held: 3600})
			if g.Dropped {
				t.Fatal("a lease that covers the slice was not renewed")
			}
			ttl, end := rdb.PTTL(context.Background(), account).Val(), time.Hour+time.Duration(g.Life)*time.Microsecond
			if ttl < end-time.Second || ttl > end+time.Second {
				t.Fatalf("the key lives for %v, its tokens for %v", ttl, end)
			}
		}
	})
}

// Redis loses its data; others are granted what a node still holds. Its slice
// ends with its next report: it was charged, and is not lent a second time.
func TestASliceOfBeforeALossNeedsRoom(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, rule, ctx := newStore(t, rdb), Per(100, maxPeriod).Rule(), context.Background()
		before := settleAs(t, s, "k", rule, wish(60))
		want := func(g slice.Grant, dropped bool, used float64, lent int64) {
			t.Helper()
			if g.Dropped != dropped || g.Used < used-0.01 || g.Used > used || g.Lent != lent {
				t.Fatalf("%+v; want dropped %t, used %v, lent %v", g, dropped, used, lent)
			}
		}
		must(t, rdb.FlushAll(ctx).Err())
		after := settleAs(t, s, "k", rule, wish(80))
		want(settleAs(t, s, "k", rule, slice.Usage{Tag: after.Tag, Spent: 10, Held: 70}), false, 80, 70) // the lease covers it
		want(settleAs(t, s, "k", rule, slice.Usage{Tag: slice.Tag{Epoch: after.Tag.Epoch + 1}, Spent: 5, Held: 15}), false, 100, 85)
		want(settleAs(t, s, "k", rule, slice.Usage{Tag: slice.Tag{Epoch: before.Tag.Epoch + 1}, Spent: 10, Held: 30}), true, 140, 85)
		want(settleAs(t, s, "k", rule, slice.Usage{Tag: before.Tag, Spent: 20, Returned: 10, Held: 60}), false, 135, 60) // 85 of 90 are covered
		if g := settleAs(t, s, "k", rule, slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 1}}, Want: 1, Least: 1, Unit: 1, Divisor: 1}); g.Admitted[0] != 0 || g.Granted != 0 {
			t.Fatalf("%+v", g)
		}
	})
}

// An account of a time that is an hour away does not stand still for an hour: a
// key that is used up is admitted again after its own RetryAfter.
func TestAnAccountFarAheadOfTheClock(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, l := newStore(t, rdb), PerSecond(20)
		account := s.Account("api", "k")
		g := settleAs(t, s, account, l.Rule(), slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 15}}, Want: 5, Least: 1, Unit: 1, Divisor: 1})
		shift(t, rdb, account, -time.Hour)
		ahead := slice.Tag{Epoch: g.Tag.Epoch + 60}
		g = settleAs(t, s, account, l.Rule(), slice.Usage{Needs: []slice.Need{{Cost: 20, Count: 1}}})
		if !g.Rebuilt || g.Admitted[0] != 0 || g.Lent != 0 || g.Used > 15 {
			t.Errorf("%+v", g)
		}
		if left := rdb.PTTL(context.Background(), account).Val(); left > time.Second {
			t.Error("the key lives for", left)
		}
		if g = settleAs(t, s, account, l.Rule(), slice.Usage{Tag: ahead, Spent: 5}); g.Rebuilt || g.Used < 5 {
			t.Errorf("%+v", g) // no lease covers what was spent of the slice: it is charged
		}
		takeAll(t, s, "k", l)
		d := take(t, s, "k", l, 1)
		if d.RetryAfter > 50*time.Millisecond {
			t.Fatalf("%+v", d)
		}
		time.Sleep(d.RetryAfter)
		if d = take(t, s, "k", l, 1); !d.Allowed {
			t.Errorf("%+v", d)
		}
	})
}

// More used than any limit allows, as somebody else's program might store it,
// denies for as long as an account that is just full, in a window to its end; and
// what was lent, for as long as a lease.
func TestAbsurdAmounts(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		account := s.Account("api", "k")
		now := time.Now().UnixMicro()
		old := now - 4*slice.Epoch
		for _, state := range []string{"1e+17 " + strconv.FormatInt(now, 10) + " 0 0", "1e+18 " + strconv.FormatInt(old, 10) + " 500000000000000000 500000000000000000"} {
			for l, most := range map[Limit]time.Duration{PerSecond(20): 50 * time.Millisecond, Window(20, 100*time.Millisecond): 100 * time.Millisecond} {
				must(t, rdb.Set(ctx, account, state, 0).Err())
				if d := take(t, s, "k", l, 1); !d.Allowed {
					if d.RetryAfter > most {
						t.Fatalf("%s, %v: %+v", state, l, d)
					}
					time.Sleep(d.RetryAfter)
					if d = take(t, s, "k", l, 1); !d.Allowed {
						t.Errorf("%s, %v: %+v", state, l, d)
					}
				}
				if left := rdb.PTTL(ctx, account).Val(); left <= 0 || left > 2*time.Second {
					t.Errorf("%s, %v: the key lives for %v", state, l, left)
				}
			}
		}
	})
}
