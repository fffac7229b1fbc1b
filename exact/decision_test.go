package exact

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

func take(t testing.TB, s *Store, key string, l Limit, n int64) Decision {
	t.Helper()
	d, err := s.Take(context.Background(), "api", key, l, n)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDegenerateLimits(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		for _, l := range []Limit{PerSecond(0), Window(0, time.Hour), PerSecond(0).WithBurst(5)} {
			if d := take(t, s, "zero", l, 1); d.Allowed || d.RetryAfter != slice.Never {
				t.Errorf("%v: %+v", l, d)
			}
			if d := take(t, s, "zero", l, 0); d.Allowed || d.RetryAfter != slice.Never {
				t.Errorf("%v: %+v", l, d)
			}
			must(t, s.Reset(ctx, "api", "zero", l))
		}
		for _, n := range []int64{11, math.MaxInt64} {
			if d := take(t, s, "big", PerSecond(10), n); d.Allowed || d.RetryAfter != slice.Never || d.Limit != 10 {
				t.Errorf("%+v", d)
			}
		}
		for _, n := range []int64{-5, math.MinInt64} {
			if d, err := s.Take(ctx, "api", "k", PerSecond(10), n); !errors.Is(err, ErrInvalidCost) || d != (Decision{}) {
				t.Errorf("%+v %v", d, err)
			}
		}
		if _, err := s.Take(ctx, "api", "k", Limit{}, 1); !errors.Is(err, ErrInvalidLimit) {
			t.Error(err)
		}
		if d := take(t, s, "free", PerSecond(10), 0); !d.Allowed || d.Remaining != 10 || d.ResetAfter != 0 {
			t.Errorf("%+v", d)
		}
		if n := rdb.DBSize(ctx).Val(); n != 0 {
			t.Errorf("%d keys were written", n)
		}
		admitted := 0
		for range 10 {
			if take(t, s, "burst", Per(10, time.Hour).WithBurst(4), 1).Allowed {
				admitted++
			}
		}
		if admitted != 4 {
			t.Errorf("%d at once of burst 4", admitted)
		}
		take(t, s, "short", Per(1, 500*time.Microsecond), 1)
		if ttl := rdb.PTTL(ctx, s.Account("api", "short")).Val(); ttl == -time.Nanosecond {
			t.Error("no TTL")
		}
	})
}

func TestDenialIsFree(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s := newStore(t, rdb)
		count := func(key string, l Limit, calls int) (n int) {
			for range calls {
				if take(t, s, key, l, 1).Allowed {
					n++
				}
			}
			return n
		}
		if n := count("a", PerHour(10), 50); n != 10 {
			t.Error(n)
		}
		if n := count("a", PerHour(20), 50); n != 10 {
			t.Error(n)
		}
		count("b", PerDay(10), 8)
		if d := take(t, s, "b", PerDay(10), 5); d.Allowed || d.Remaining != 2 {
			t.Errorf("%+v", d)
		}
		if d := take(t, s, "b", PerDay(10), 2); !d.Allowed || d.Remaining != 0 {
			t.Errorf("%+v", d)
		}
	})
}

func TestOneInstant(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s := newStore(t, rdb)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if d, err := s.Take(context.Background(), "api", "k", PerHour(25), 1); err == nil && d.Allowed {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		if admitted.Load() != 25 {
			t.Error(admitted.Load())
		}
	})
}

// A denied flood writes nothing.
func TestFloodWritesNothing(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		take(t, s, "k", PerHour(10), 10)
		before := rdb.Get(ctx, s.Account("api", "k")).Val()
		for range 100 {
			take(t, s, "k", PerHour(10), 1)
			take(t, s, "k", PerHour(10), 0)
		}
		if after := rdb.Get(ctx, s.Account("api", "k")).Val(); after != before {
			t.Errorf("%q became %q", before, after)
		}
	})
}

// Peek says what a request of one token would be told.
func TestPeekSaysWhatTakeDoes(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s := newStore(t, rdb)
		for n := range int64(4) {
			if d := take(t, s, "k", PerHour(3), 0); d.Allowed != (n < 3) || d.Remaining != 3-n || d.Allowed != (d.RetryAfter == 0) {
				t.Errorf("after %d of 3: %+v", n, d)
			}
			p := take(t, s, "k", PerHour(3), 0)
			if d := take(t, s, "k", PerHour(3), 1); d.Allowed != p.Allowed || d.RetryAfter > p.RetryAfter || p.RetryAfter-d.RetryAfter > time.Minute {
				t.Errorf("Peek %+v, Take %+v", p, d)
			}
		}
	})
}

func TestReset(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		take(t, s, "k", PerHour(10), 10)
		must(t, s.Reset(ctx, "api", "k", PerHour(10)))
		if n := rdb.Exists(ctx, s.Account("api", "k")).Val(); n != 0 {
			t.Error("an empty account is still there")
		}
		e := &slice.Settle{Account: s.Account("api", "k"), Rule: PerHour(10).Rule(),
			Usage: slice.Usage{Want: 4, Least: 1, Unit: 1, Divisor: 2, Needs: []slice.Need{{Cost: 1, Count: 2}}}}
		s.Settle(ctx, []*slice.Settle{e})
		must(t, s.Reset(ctx, "api", "k", PerHour(10)))
		if d := take(t, s, "k", PerHour(10), 0); d.Remaining != 6 {
			t.Errorf("%+v", d) // what is lent stays taken
		}
		take(t, s, "k", PerHour(10), 6)
		must(t, s.Reset(ctx, "api", "k", PerHour(0)))
		if d := take(t, s, "k", PerHour(10), 0); d.Remaining != 6 {
			t.Errorf("after a reset under a limit of 0: %+v", d)
		}
		if err := s.Reset(ctx, "api", "k", Limit{}); !errors.Is(err, ErrInvalidLimit) {
			t.Error(err)
		}
	})
}

func TestTakeErrors(t *testing.T) {
	rdb := redistest.MiniClient(t)
	s, ctx := newStore(t, rdb), context.Background()
	must(t, rdb.LPush(ctx, s.Account("api", "k"), 1).Err())
	if d, err := s.Take(ctx, "api", "k", PerHour(1), 1); !redis.HasErrorPrefix(err, "WRONGTYPE") || d != (Decision{}) {
		t.Error(d, err)
	}
	if d, err := s.Peek(ctx, "api", "k", PerHour(1)); err == nil || d != (Decision{}) {
		t.Error(d, err)
	}
	if err := s.Reset(ctx, "api", "k", PerHour(1)); err == nil {
		t.Error("a list was reset")
	}
}

// shift moves the stored account into the past: time passes for it.
func shift(t testing.TB, rdb *redis.Client, account string, by time.Duration) {
	t.Helper()
	f := strings.Fields(rdb.Get(context.Background(), account).Val())
	if len(f) != 4 {
		t.Fatalf("account %q", f)
	}
	ts, err := strconv.ParseInt(f[1], 10, 64)
	must(t, err)
	f[1] = strconv.FormatInt(ts-by.Microseconds(), 10)
	must(t, rdb.Set(context.Background(), account, strings.Join(f, " "), redis.KeepTTL).Err())
}

// Denied, polled 20 times, then asked again after exactly the first RetryAfter: admitted.
func TestRetryAfterIsExact(t *testing.T) {
	const century = 36525 * 24 * time.Hour
	limits := []Limit{PerDay(3), PerHour(7), PerMinute(11), PerSecond(3), PerSecond(1000), PerSecond(40_000_000),
		PerDay(1_000_000), Per(1, 17*time.Hour), PerSecond(3).WithBurst(1), PerDay(86_399).WithBurst(7),
		PerSecond(slice.MaxTokens), Per(slice.MaxTokens, century), Per(1, century), PerSecond(7).WithBurst(1 << 34)}
	mini := redistest.Mini(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	s := newStore(t, rdb)
	for i, l := range limits {
		for j, cost := range []int64{1, max(1, l.Burst()/3), l.Burst()} {
			name := fmt.Sprint(i, "-", j)
			now := time.UnixMicro(1795980557158196 + int64(i)*7919*1_000_003)
			clock := func(d time.Duration) { now = now.Add(d); mini.SetTime(now) }
			clock(0)
			for _, part := range []int64{l.Burst() / 3, l.Burst() / 7, 1} { // leaves fractions behind
				if part > 0 {
					take(t, s, name, l, part)
				}
				clock(time.Duration(1+i) * 37 * time.Microsecond)
			}
			if d := take(t, s, name, l, 0); d.Remaining > 0 {
				take(t, s, name, l, d.Remaining)
			}
			first := take(t, s, name, l, cost)
			if first.Allowed {
				continue // so fast that it refilled
			}
			at := now
			for range 20 {
				clock(min(first.RetryAfter/41, time.Second).Truncate(time.Microsecond))
				if d := take(t, s, name, l, cost); d.Allowed || d.RetryAfter <= 0 {
					break // the limits of a few µs
				}
			}
			clock(at.Add(first.RetryAfter).Sub(now))
			if d := take(t, s, name, l, cost); !d.Allowed {
				t.Errorf("%v, cost %d: refused after %v: %+v", l, cost, first.RetryAfter, d)
			}
		}
	}
}

// The same on Redis, in its own time.
func TestRetryAfterIsExactOnRedis(t *testing.T) {
	s := newStore(t, redistest.Start(t).Client(t))
	for _, l := range []Limit{PerSecond(40), PerSecond(1000), Per(3, 100*time.Millisecond), Window(5, 200*time.Millisecond)} {
		for range 5 {
			for take(t, s, l.String(), l, 1).Allowed {
			}
			first := take(t, s, l.String(), l, 1)
			if first.Allowed {
				continue
			}
			time.Sleep(first.RetryAfter)
			if d := take(t, s, l.String(), l, 1); !d.Allowed {
				t.Errorf("%v: refused after %v: %+v", l, first.RetryAfter, d)
			}
		}
	}
}

// A rate is kept: 3/s admit 180 in a minute, and the burst.
func TestRateIsKept(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	s, now, admitted := newStore(t, rdb), time.UnixMicro(1795980557158196), 0
	for range 600 {
		mini.SetTime(now)
		for take(t, s, "k", PerSecond(3), 1).Allowed {
			admitted++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if admitted < 181 || admitted > 184 {
		t.Error(admitted)
	}
}

// A window ends for all at once, and 59 s into a minute one waits 1 s.
func TestWindow(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	s, l := newStore(t, rdb), Window(5, time.Minute)
	edge := time.Unix(1795980600, 0)
	mini.SetTime(edge.Add(-time.Second))
	for i := range 8 {
		d := take(t, s, "k", l, 1)
		if d.Allowed != (i < 5) || !d.Allowed && d.RetryAfter != time.Second || d.ResetAfter != time.Second {
			t.Fatalf("%d: %+v", i, d)
		}
	}
	if ttl := rdb.PTTL(context.Background(), s.Account("api", "k")).Val(); ttl != time.Second {
		t.Error(ttl)
	}
	mini.SetTime(edge)
	if d := take(t, s, "k", l, 5); !d.Allowed {
		t.Errorf("%+v", d)
	}
}

// Redis's clock steps back by two lease epochs at most: never a token more, and RetryAfter includes the step.
func TestClockStepsBack(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	s, now := newStore(t, rdb), time.UnixMicro(1795980557158196)
	for _, l := range []Limit{PerSecond(10), Window(10, time.Minute)} {
		for _, step := range []time.Duration{time.Second, 2 * time.Minute} {
			mini.SetTime(now)
			take(t, s, l.String()+step.String(), l, 10)
			mini.SetTime(now.Add(-step))
			d := take(t, s, l.String()+step.String(), l, 1)
			if d.Allowed || d.RetryAfter <= step {
				t.Errorf("%v: %+v", l, d)
			}
			mini.SetTime(now.Add(-step + d.RetryAfter))
			if d := take(t, s, l.String()+step.String(), l, 1); !d.Allowed {
				t.Errorf("%v: %+v", l, d)
			}
		}
	}
}

func TestMemory(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	s, ctx := newStore(t, rdb), context.Background()
	account := s.Account("api", "0123456789abcdef")
	for _, state := range []string{"3 1795980557158196 0 0", "3.1415926535897931 1795980557158196 0 47", "12.141592653589793 1795980557158196 3 4"} {
		must(t, rdb.Set(ctx, account, state, time.Hour).Err())
		if n := rdb.MemoryUsage(ctx, account).Val(); n > 136 {
			t.Errorf("%s: %d bytes", state, n)
		}
	}
	must(t, rdb.Del(ctx, account).Err())
	take(t, s, "0123456789abcdef", PerSecond(7), 3)
	take(t, s, "0123456789abcdef", PerSecond(7), 1)
	if n := rdb.MemoryUsage(ctx, account).Val(); n > 136 {
		t.Errorf("%s: %d bytes", rdb.Get(ctx, account).Val(), n)
	}
}
