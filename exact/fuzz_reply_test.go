package exact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// This file is fuzz targets for what comes back from a server: replies of every
// shape, as values and as bytes, and names in sorted sets.

// shape turns fuzz input into a reply of any shape a client may hand out.
type shape struct{ in []byte }

func (s *shape) next() byte {
	if len(s.in) == 0 {
		return 0
	}
	b := s.in[0]
	s.in = s.in[1:]
	return b
}

func (s *shape) value(depth int) any {
	b := s.next()
	switch b % 12 {
	case 0:
		return int64(int8(s.next()))
	case 1:
		return int64(math.MaxInt64) - int64(s.next())
	case 2:
		return int64(math.MinInt64) + int64(s.next())
	case 3, 4:
		return s.text()
	case 5:
		return nil
	case 6:
		return float64(s.next()) / 7
	case 7:
		return errors.New(s.text())
	case 8:
		return b > 127
	case 9:
		return map[any]any{"x": int64(s.next())}
	case 10: // the reply to some settles
		reply := []any{int64(1e15)}
		for range s.next() % 5 {
			reply = append(reply, s.account()...)
		}
		return reply
	}
	list := []any{}
	for range s.next() % 16 {
		if depth > 0 {
			list = append(list, s.value(depth-1))
		}
	}
	return list
}

// account is the part of a reply that is about one settle, of one need or of none.
func (s *shape) account() []any {
	b := s.next()
	if b == 255 {
		return []any{int64(refused), s.text()}
	}
	fields := []any{int64(b % 4), int64(b >> 4), "3.5", int64(2), int64(1)}
	if b&8 != 0 {
		fields = append(fields, int64(1))
	}
	return fields
}

func (s *shape) text() string {
	words := []string{"", "0", "3.5", "-1", "1e999", "NaN", "0x1p4", "ERR bad argument", "WRONGTYPE Operation", "OOM x", "\x00\xff", strings.Repeat("9", 400)}
	return words[int(s.next())%len(words)]
}

// FuzzReply reads replies of any shape: each settle gets an outcome, a grant only if it ran, and a
// grant that can be used.
func FuzzReply(f *testing.F) {
	for _, accounts := range [][]byte{{0, 8, 2}, {0, 255, 7, 1}, {1, 24, 0, 0}, {3, 8}, {8, 8, 8}, {255, 0, 255, 1, 255, 2}} {
		f.Add(append([]byte{10, byte(min(len(accounts), 4))}, accounts...))
	}
	f.Add([]byte{11, 3, 1, 0, 10, 1, 0})
	f.Add([]byte{3, 7})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &shape{in}
		c := &call{reply: s.value(3)}
		if s.next()%8 == 7 {
			c.err = errors.New(s.text())
		}
		group := []*slice.Settle{{Usage: slice.Usage{Want: 1}}, {Usage: slice.Usage{Want: 1, Needs: []slice.Need{{Cost: 1, Count: 1}}}}, {Usage: slice.Usage{Want: 3}}}
		readReply(group, c)
		for i, e := range group {
			ran := e.Outcome == slice.Ran
			if ran != (e.Err == nil) || !ran && (e.Grant.Admitted != nil || e.Grant.Granted != 0) {
				t.Fatalf("%d: %v, %v, %+v", i, e.Outcome, e.Err, e.Grant)
			}
			if ran && len(e.Grant.Admitted) != len(e.Usage.Needs) {
				t.Fatalf("%d: %+v", i, e.Grant)
			}
			if g := &e.Grant; g.Granted < 0 || g.Granted > e.Usage.Want || g.Lent < 0 || math.IsInf(g.Used, 0) {
				t.Fatalf("%d: no account can be like this: %+v", i, g)
			}
			if outcome := e.Outcome; c.err != nil && outcome == slice.Ran {
				t.Fatalf("ran in spite of %v", c.err)
			}
			if (e.Outcome == slice.Unknown) != (group[0].Outcome == slice.Unknown) && c.err == nil {
				t.Fatalf("%d: %v beside %v: half of a reply was believed", i, e.Outcome, group[0].Outcome)
			}
		}
	})
}

// Numbers that no script of ours answers are not believed: a grant of -5 would make a slice
// of four billion, and a NaN or an infinity would be in all that is reckoned with it.
func TestNumbersThatCannotBe(t *testing.T) {
	good := func() []any {
		return []any{int64(60e6), int64(0), int64(0), "7.5", int64(2), int64(3), int64(1)}
	}
	told := func(reply []any) slice.Outcome {
		e := &slice.Settle{Usage: slice.Usage{Want: 3, Needs: []slice.Need{{Cost: 1, Count: 2}}}}
		readReply([]*slice.Settle{e}, &call{reply: reply})
		return e.Outcome
	}
	if got := told(good()); got != slice.Ran {
		t.Fatalf("a sound reply: %v", got)
	}
	for i, bad := range map[int][]any{
		0: {int64(-1)}, 2: {int64(-1), int64(math.MaxInt64)}, 3: {"-1", "NaN", "Inf", "1e999"},
		4: {int64(-1)}, 5: {int64(-5), int64(4)}, 6: {int64(-1), int64(3)},
	} {
		for _, v := range bad {
			reply := good()
			if reply[i] = v; told(reply) == slice.Ran {
				t.Errorf("field %d may be %v", i, v)
			}
		}
	}
}

// FuzzFleetReply does the same for heartbeats.
func FuzzFleetReply(f *testing.F) {
	f.Add([]byte{11, 3, 0, 1, 3, 1, 4, 2})
	f.Add([]byte{11, 2, 0, 1, 5})
	f.Add([]byte{11, 0})
	f.Add([]byte{5})
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &shape{in}
		c := &call{reply: s.value(2)}
		if s.next()%4 == 3 {
			c.err = errors.New(s.text())
		}
		fleet := slice.Fleet{Members: []string{"stale"}, Joined: true}
		readFleet(&fleet, c)
		switch {
		case fleet.Err == nil && (len(fleet.Members) == 0 || fleet.Members[0] == "stale"):
			t.Fatalf("%+v of %v", fleet, c.reply)
		case fleet.Err != nil && fleet.Members != nil:
			t.Fatalf("members beside an error: %+v", fleet)
		}
	})
}

// FuzzMark reads any member of the set of marks; what Mark writes comes back.
func FuzzMark(f *testing.F) {
	for _, m := range []string{"", ":", "5:3:api:k", "-1:x", "9223372036854775808:x", "0x5:a", " 5:a", "5", "+5:a", "5:", "\x00:\xff"} {
		f.Add(m, 1.5e15, int64(7))
	}
	f.Add("5:a", math.Inf(1), int64(-1))
	f.Add("5:a", math.NaN(), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, member string, score float64, cost int64) {
		if m, ok := readMark(redis.Z{Member: member, Score: score}); ok && !strings.HasSuffix(member, ":"+m.Account) {
			t.Fatalf("%q: %+v", member, m)
		}
		for _, odd := range []any{nil, int64(5), []byte(member), 1.5} {
			if m, ok := readMark(redis.Z{Member: odd, Score: score}); ok {
				t.Fatalf("%v: %+v", odd, m)
			}
		}
		m, ok := readMark(redis.Z{Member: fmt.Sprintf("%d:%s", cost, member), Score: 1e15})
		if want := (slice.Mark{Account: member, Cost: cost, At: 1e15}); !ok || m != want {
			t.Fatalf("%+v, want %+v", m, want)
		}
	})
}

// FuzzHeartbeatArguments calls the script with any arguments: it answers with the fleet or an
// error of its own words, and never leaves a registry that does not expire.
func FuzzHeartbeatArguments(f *testing.F) {
	for _, a := range []string{"me 5000", "me", "", "me 0", "me -1", "me 1e999", "me nan", "me 0x10", "me 1.5", "me 19", "me 1000000000", "me 1000000001", "\x00 5 6", " 5000"} {
		f.Add(a)
	}
	rdb := redistest.Start(f).Client(f)
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, text string) {
		args := argumentsOf(text, " ")
		reply, err := rdb.Eval(ctx, heartbeatSource, []string{"fleet"}, args...).Slice()
		if err != nil && err.Error() != badArgument {
			t.Fatalf("%q: %v", text, err)
		}
		var fleet slice.Fleet
		if readFleet(&fleet, &call{reply: any(reply), err: err}); err == nil && (fleet.Err != nil || !fleet.Joined || len(fleet.Members) != 1 || fleet.Members[0] != args[0]) {
			t.Fatalf("%q: %+v", text, fleet)
		}
		if rdb.PTTL(ctx, "fleet").Val() == -1 { // −2 is none, which one of a few milliseconds soon is
			t.Fatalf("%q: the registry has no TTL", text)
		}
		rdb.Del(ctx, "fleet")
	})
}

// said is a connection to a server that says so and hangs up.
type said struct{ text *bytes.Reader }

func (c said) Read(p []byte) (int, error) {
	if c.text.Len() == 0 {
		return 0, io.EOF
	}
	return c.text.Read(p)
}
func (c said) Write(p []byte) (int, error)      { return len(p), nil }
func (c said) Close() error                     { return nil }
func (c said) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c said) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c said) SetDeadline(time.Time) error      { return nil }
func (c said) SetReadDeadline(time.Time) error  { return nil }
func (c said) SetWriteDeadline(time.Time) error { return nil }

// hugeLength is the length of an array or a text of a million and more.
var hugeLength = regexp.MustCompile(`[*$%>~=][0-9]{7,}\r`)

// FuzzWire answers every call of a store with any bytes: the call returns, and a
// settle that nobody answered in order is not held for executed.
func FuzzWire(f *testing.F) {
	clock, grant := ":1000000000000000\r\n", ":0\r\n:0\r\n$1\r\n1\r\n:0\r\n:0\r\n:1\r\n"
	for _, text := range []string{"", "+OK\r\n", "*7\r\n" + clock + grant, "*13\r\n" + clock + grant + grant, "*3\r\n" + clock + ":-1\r\n$9\r\nWRONGTYPE\r\n", "-NOSCRIPT x\r\n*7\r\n" + clock + grant,
		"*385\r\n" + clock + strings.Repeat(grant, 64),
		"-LOADING x\r\n", "$-1\r\n", "*-1\r\n", "%1\r\n+a\r\n:1\r\n", ">2\r\n+a\r\n+b\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(99999999999999999999\r\n",
		"*2\r\n:1\r\n$2\r\nme\r\n", "*1\r\n*2\r\n$3\r\n5:a\r\n$4\r\n1e15\r\n", "-MOVED 1 127.0.0.1:1\r\n", "*1\r\n*0\r\n", "\x00\xff"} {
		f.Add([]byte(text), uint8(0))
		f.Add([]byte(text), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, what uint8) {
		if hugeLength.Match(text) {
			t.Skip("the client makes room for what is announced, gigabytes of it; that is its own matter")
		}
		rdb := redis.NewClient(&redis.Options{Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: 1, DialerRetries: 1,
			Dialer: func(context.Context, string, string) (net.Conn, error) { return said{bytes.NewReader(text)}, nil }})
		defer rdb.Close()
		s, ctx := newStore(t, rdb), context.Background()
		switch what % 4 {
		case 0, 1:
			batch := ones(s, int(what%2)*63+1, "k")
			s.Settle(ctx, batch)
			for _, e := range batch {
				if (e.Outcome == slice.Ran) != (e.Err == nil) || e.Outcome == slice.Ran && bytes.Count(text, []byte("\r\n")) < 6+2*len(batch) {
					t.Fatalf("%q: %v, %v", text, e.Outcome, e.Err)
				}
			}
		case 2:
			fleets := []*slice.Fleet{{Limiter: "a"}, {Limiter: "b"}}
			s.Heartbeat(ctx, "me", time.Second, fleets)
			for _, fleet := range fleets {
				if fleet.Err == nil && len(fleet.Members) == 0 {
					t.Fatalf("%q: nobody, not even this node", text)
				}
			}
		case 3:
			if marks, err := s.Marks(ctx, 0, 10); err != nil && marks != nil {
				t.Fatalf("%q: %v, %v", text, marks, err)
			}
		}
	})
}
