package sim

import "testing"

func TestCallsOnTheWire(t *testing.T) {
	const settle = "*5\r\n$7\r\nevalsha\r\n$3\r\nabc\r\n$1\r\n1\r\n$17\r\nhybrid:{}a1:3:api\r\n$1\r\n0\r\n"
	const poll = "*2\r\n$13\r\nZRANGEBYSCORE\r\n$1\r\nk\r\n"
	for _, c := range []struct {
		call     string
		commands int
		kind     uint64
	}{
		{settle, 1, kindOfSettle},
		{settle + settle + settle, 3, kindOfSettle},
		{poll, 1, sumOf([]byte("zrangebyscore"))},
		{poll + poll, 2, sumOf([]byte("zrangebyscore"))},
	} {
		if n := commandsIn([]byte(c.call)); n != c.commands {
			t.Errorf("%q: %d commands", c.call, n)
		}
		if k := kindOf([]byte(c.call)); k != c.kind {
			t.Errorf("%q: another kind", c.call)
		}
	}
}
