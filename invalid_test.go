package hybrid

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// unreachable is a client of a port where nothing listens.
func unreachable(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// offline is a node that never reaches Redis, with a limiter of 10 per second.
func offline(t *testing.T) (*Node, *Limiter) {
	t.Helper()
	n, err := New(unreachable(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	l, err := n.Limiter("api", PerSecond(10), nil)
	if err != nil {
		t.Fatal(err)
	}
	return n, l
}

// wantError fails unless err is the sentinel and names all of the words.
func wantError(t *testing.T, err, sentinel error, words ...string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("error %v, want %v", err, sentinel)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not name %q", err, w)
		}
	}
}

func TestNewRefusesBadOptions(t *testing.T) {
	for _, c := range []struct {
		opts  Options
		words []string // field, value, allowed range
	}{
		{Options{SyncInterval: -time.Second}, []string{"SyncInterval", "-1s", "1ms to 10s"}},
		{Options{SyncInterval: time.Microsecond}, []string{"SyncInterval", "1µs", "1ms to 10s"}},
		{Options{SyncInterval: time.Minute}, []string{"SyncInterval", "1m0s", "1ms to 10s"}},
		{Options{StoreTimeout: -1}, []string{"StoreTimeout", "-1ns", "1ms to 10s"}},
		{Options{StoreTimeout: time.Hour}, []string{"StoreTimeout", "1h0m0s", "1ms to 10s"}},
		{Options{Servers: -1}, []string{"Servers", "-1", "0 to 100000"}},
		{Options{Servers: 100_001}, []string{"Servers", "100001", "0 to 100000"}},
		{Options{MaxKeys: -5}, []string{"MaxKeys", "-5", "1 to 1073741824"}},
		{Options{MaxKeys: 1<<30 + 1}, []string{"MaxKeys", "1073741825", "1 to 1073741824"}},
		{Options{NodeID: strings.Repeat("n", 129)}, []string{"NodeID", "129 bytes", "128 bytes"}},
		{Options{Prefix: "my{tag}"}, []string{"Prefix", "my{tag}"}},
		{Options{Prefix: "a\nb"}, []string{"Prefix"}},
		{Options{Prefix: strings.Repeat("p", 201)}, []string{"Prefix", "200"}},
	} {
		n, err := New(unreachable(t), &c.opts)
		wantError(t, err, ErrInvalidOption, c.words...)
		if n != nil {
			t.Errorf("%+v: a node beside the error", c.opts)
		}
	}
	for _, none := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		_, err := New(none, nil)
		wantError(t, err, ErrInvalidOption, "rdb", "nil")
	}
}

func TestLimiterRefusesBadArguments(t *testing.T) {
	n, err := New(unreachable(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, c := range []struct {
		name     string
		limit    Limit
		opts     *LimiterOptions
		sentinel error
		words    []string
	}{
		{"", PerSecond(1), nil, ErrInvalidOption, []string{"name", "0 bytes", "1 to 256 bytes"}},
		{strings.Repeat("x", 257), PerSecond(1), nil, ErrInvalidOption, []string{"name", "257 bytes"}},
		{"l", Limit{}, nil, ErrInvalidLimit, nil},
		{"l", PerSecond(-1), nil, ErrInvalidLimit, []string{"count", "-1"}},
		{"l", PerSecond(1<<53 + 1), nil, ErrInvalidLimit, []string{"count"}},
		{"l", Per(1, 0), nil, ErrInvalidLimit, []string{"period"}},
		{"l", Per(1, -time.Second), nil, ErrInvalidLimit, []string{"period", "-1s"}},
		{"l", Per(1, 500*time.Nanosecond), nil, ErrInvalidLimit, []string{"period", "500ns"}},
		{"l", PerSecond(5).WithBurst(0), nil, ErrInvalidLimit, []string{"burst", "0"}},
		{"l", PerSecond(5).WithBurst(-3), nil, ErrInvalidLimit, []string{"burst", "-3"}},
		{"l", Window(10, time.Minute).WithBurst(20), nil, ErrInvalidLimit, []string{"burst", "20"}},
		{"l", PerSecond(1), &LimiterOptions{OnFailure: 7}, ErrInvalidOption, []string{"OnFailure", "FailurePolicy(7)", "FailLocal, FailOpen or FailClosed"}},
		{"l", PerSecond(1), &LimiterOptions{Accuracy: Within(-0.1, 0)}, ErrInvalidAccuracy, []string{"Accuracy", "-0.1", "0 to 1"}},
		{"l", PerSecond(1), &LimiterOptions{Accuracy: Within(0, 1.5)}, ErrInvalidAccuracy, []string{"Accuracy", "1.5", "0 to 1"}},
		{"l", PerSecond(1), &LimiterOptions{Accuracy: Within(math.NaN(), 0)}, ErrInvalidAccuracy, []string{"Accuracy", "NaN"}},
		{"l", PerSecond(1), &LimiterOptions{Accuracy: Within(0, math.Inf(1))}, ErrInvalidAccuracy, []string{"Accuracy", "Inf"}},
	} {
		l, err := n.Limiter(c.name, c.limit, c.opts)
		wantError(t, err, c.sentinel, c.words...)
		if l != nil {
			t.Errorf("%q, %v: a limiter beside the error", c.name, c.limit)
		}
	}
	if _, err := n.Limiter("twice", PerSecond(1), nil); err != nil {
		t.Fatal(err)
	}
	_, err = n.Limiter("twice", PerSecond(1), nil)
	wantError(t, err, ErrDuplicateLimiter, `"twice"`)
}

func TestSetLimitRefusesAndKeepsTheOldLimit(t *testing.T) {
	_, l := offline(t)
	for _, bad := range []Limit{{}, PerSecond(-1), Per(1, time.Nanosecond)} {
		wantError(t, l.SetLimit(bad), ErrInvalidLimit)
	}
	if got := l.Limit("k"); got != PerSecond(10) {
		t.Errorf("limit %v after refused changes, want 10 per second", got)
	}
}

func TestCallsRefuseBadArguments(t *testing.T) {
	n, l := offline(t)
	ctx := context.Background()
	long := strings.Repeat("k", 64<<10+1)
	calls := map[string]func(key string, n int64) error{
		"AllowN":   func(k string, n int64) error { _, err := l.AllowN(ctx, k, n); return err },
		"WaitN":    func(k string, n int64) error { return l.WaitN(ctx, k, n) },
		"Refund":   func(k string, n int64) error { return l.Refund(k, n) },
		"Charge":   func(k string, n int64) error { return l.Charge(k, n) },
		"AllowAll": func(k string, c int64) error { _, err := n.AllowAll(ctx, Check{l, k, c}); return err },
	}
	for name, call := range calls {
		wantError(t, call("k", -5), ErrInvalidCost, "-5")
		wantError(t, call("k", math.MinInt64), ErrInvalidCost)
		if err := call(long, 1); !errors.Is(err, ErrInvalidKey) {
			t.Errorf("%s with a key of 64 KiB + 1: %v", name, err)
		}
	}
	wantError(t, l.Refund("k", math.MaxInt64), ErrInvalidCost)
	wantError(t, l.Charge("k", math.MaxInt64), ErrInvalidCost)
	if _, err := l.Peek(ctx, long); !errors.Is(err, ErrInvalidKey) {
		t.Errorf("Peek of a long key: %v", err)
	}
	wantError(t, l.Reset(ctx, long), ErrInvalidKey, "65537", "65536")
	_, err := n.AllowAll(ctx, Check{Key: "k"})
	wantError(t, err, ErrInvalidOption, "Check.Limiter")

	// Costs beyond all limits are no misuse: they never fit.
	for _, cost := range []int64{11, 1 << 53, math.MaxInt64} {
		r, err := l.AllowN(ctx, "k", cost)
		if err != nil || r.Allowed || r.RetryAfter != Never {
			t.Errorf("cost %d of burst 10: %+v, %v; want denied with Never", cost, r, err)
		}
		wantError(t, l.WaitN(ctx, "k", cost), ErrExceedsBurst)
	}
}

func TestContextsThatEndedAreErrorsOnlyWhereSomethingWaits(t *testing.T) {
	_, l := offline(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := l.Allow(ctx, "k"); !errors.Is(err, context.Canceled) || r != (Result{}) {
		t.Errorf("Allow: %+v, %v", r, err)
	}
	if err := l.Wait(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := l.Peek(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("Peek: %v", err)
	}
	if err := l.Reset(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("Reset: %v", err)
	}
}
