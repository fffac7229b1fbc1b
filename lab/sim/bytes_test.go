package sim

import (
	"math"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

func TestBytesOnTheWire(t *testing.T) {
	cmd := redis.NewCmd(t.Context(), "evalsha", "abc", 1, "key", int64(-12), 1.5)
	const call = "*6\r\n$7\r\nevalsha\r\n$3\r\nabc\r\n$1\r\n1\r\n$3\r\nkey\r\n$3\r\n-12\r\n$3\r\n1.5\r\n"
	if n := bytesOfCalls([]redis.Cmder{cmd, cmd}); n != int64(2*len(call)) {
		t.Errorf("%d bytes for two calls of %d", n, len(call))
	}
	const reply = "*3\r\n:-1\r\n$2\r\nno\r\n*0\r\n"
	if n := bytesOfReply([]any{int64(-1), "no", []any{}}); n != int64(len(reply)) {
		t.Errorf("%d bytes for a reply of %d", n, len(reply))
	}
	if n := bytesOfReply(storeError("ERR no")); n != int64(len("-ERR no\r\n")) {
		t.Errorf("%d bytes for an error", n)
	}
	for _, n := range []int64{0, 9, 10, -1, 99_999, 100_000, math.MaxInt64} {
		if digits(n) != len(strconv.FormatInt(n, 10)) {
			t.Errorf("%d has %d digits", n, digits(n))
		}
	}
}

// The bytes that are reckoned for the account in plain Go are those that pass over
// connections to an embedded Redis.
func TestBytesOfBothStores(t *testing.T) {
	e := Experiment{Limit: hybrid.PerSecond(100), Load: 1.4, Fills: 10, Nodes: 5, Seed: 3}
	a := e.Run(t)
	e.Store = Mini
	b := e.Run(t)
	for _, v := range []struct {
		name string
		a, b int64
	}{{"sent", a.Cost.Sent, b.Cost.Sent}, {"received", a.Cost.Received, b.Cost.Received}} {
		if r := float64(v.a) / float64(v.b); !(r > 0.93 && r < 1.07) {
			t.Errorf("%s: %d bytes by the account in plain Go, %d on connections", v.name, v.a, v.b)
		}
	}
}
