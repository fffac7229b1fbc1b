package redistest

import (
	"strconv"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// NeedMini skips a test where miniredis does not work.
func NeedMini(t testing.TB) {
	t.Helper()
	if strconv.IntSize < 64 {
		t.Skip("the embedded server counts in ints, and microseconds since 1970 do not fit into 32 bits; the tests on a real server run")
	}
}

// Mini starts a miniredis until the test ends. Its keys expire only by FastForward.
func Mini(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	NeedMini(t)
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// MiniClient returns a client of a fresh miniredis.
func MiniClient(t testing.TB) *redis.Client {
	t.Helper()
	return ClientOf(t, Mini(t))
}

// ClientOf returns a client of a miniredis, until the test ends.
func ClientOf(t testing.TB, m *miniredis.Miniredis) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Both runs a test on a fresh miniredis and on a fresh Redis.
func Both(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) { test(t, MiniClient(t)) })
	t.Run("redis", func(t *testing.T) { test(t, Start(t).Client(t)) })
}
