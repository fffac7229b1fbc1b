package exact

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

// mustNotRun settles, and fails unless none ran and all say why, as failures of the store.
func mustNotRun(t testing.TB, s *Store, batch []*slice.Settle, code string) {
	t.Helper()
	s.Settle(context.Background(), batch)
	for i, e := range batch {
		if e.Outcome != slice.NotRun || e.Lone || !redis.HasErrorPrefix(e.Err, code) {
			t.Fatalf("%d: %v %v %v, want %s", i, e.Outcome, e.Lone, e.Err, code)
		}
	}
}

func TestFull(t *testing.T) {
	server, ctx := redistest.Start(t), context.Background()
	rdb := server.Client(t)
	s := newStore(t, rdb)
	mustRun(t, s, ones(s, 64, "k"))
	must(t, rdb.ConfigSet(ctx, "maxmemory", "1").Err())
	mustNotRun(t, s, ones(s, 64, "k"), "OOM")
	mustNotRun(t, s, ones(s, 1, "new"), "OOM")
	must(t, rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	if got := taken(t, s, "k5"); got != 1 {
		t.Fatal("counted", got)
	}
	mustRun(t, s, ones(s, 64, "k"))
}

func TestReadOnly(t *testing.T) {
	primary := redistest.Start(t)
	s := newStore(t, redistest.StartReplica(t, primary).Client(t))
	s.Settle(context.Background(), ones(s, 1, "warm")) // the script is loaded
	mustNotRun(t, s, ones(s, 64, "k"), "READONLY")
}

func TestNotPermitted(t *testing.T) {
	server, ctx := redistest.Start(t), context.Background()
	admin := server.Client(t)
	for user, rules := range map[string][]string{
		"noscript": {"on", "nopass", "~*", "+@all", "-evalsha", "-eval"},
		"noset":    {"on", "nopass", "~*", "+@all", "-set"},
		"noget":    {"on", "nopass", "~*", "+@all", "-get"},
		"notime":   {"on", "nopass", "~*", "+@all", "-time"},
		"nokeys":   {"on", "nopass", "~other:*", "+@all"},
	} {
		must(t, admin.ACLSetUser(ctx, user, rules...).Err())
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Username: user, Password: "any"})
		t.Cleanup(func() { _ = rdb.Close() })
		s := newStore(t, rdb)
		batch := ones(s, 64, user)
		s.Settle(ctx, batch)
		for _, e := range batch {
			if e.Outcome != slice.NotRun || e.Lone || e.Err == nil {
				t.Fatalf("%s: %v %v %v", user, e.Outcome, e.Lone, e.Err)
			}
		}
		if n := admin.DBSize(ctx).Val(); n != 0 {
			t.Fatalf("%s: %d keys", user, n)
		}
	}
}

func TestLoadingAndBusy(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	s, ctx := newStore(t, rdb), context.Background()
	must(t, rdb.ConfigSet(ctx, "busy-reply-threshold", "20").Err())
	done := make(chan struct{})
	go func() {
		defer close(done)
		other := redis.NewClient(&redis.Options{Addr: rdb.Options().Addr, MaxRetries: -1})
		defer other.Close()
		other.Eval(ctx, "while true do end", nil)
	}()
	redistest.Eventually(t, "Redis is busy", func() bool {
		e := one(s, "k")
		s.Settle(ctx, []*slice.Settle{e})
		return e.Outcome == slice.NotRun && redis.HasErrorPrefix(e.Err, "BUSY")
	})
	must(t, rdb.ScriptKill(ctx).Err())
	<-done
	mustRun(t, s, ones(s, 1, "after"))
}

// One key of the wrong type among 64: the others settle once each.
func TestWrongTypeInBatch(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		must(t, rdb.LPush(ctx, s.Account("api", "k30"), "x").Err())
		for range 3 {
			batch := ones(s, 64, "k")
			s.Settle(ctx, batch)
			for i, e := range batch {
				if i == 30 && (e.Outcome != slice.NotRun || !e.Lone || !redis.HasErrorPrefix(e.Err, "WRONGTYPE")) {
					t.Fatalf("%v %v %v", e.Outcome, e.Lone, e.Err)
				}
				if i != 30 && e.Outcome != slice.Ran {
					t.Fatal(i, e.Outcome, e.Err)
				}
			}
		}
		for i := range 64 {
			if i != 30 && taken(t, s, fmt.Sprint("k", i)) != 3 {
				t.Fatalf("account %d settled %d times", i, taken(t, s, fmt.Sprint("k", i)))
			}
		}
	})
}

// badStates cannot be read, or make no sense.
var badStates = []string{
	"", " ", "x", "1", "1 2 3", "1 2 3 4 5", "1 2 3 x", "nan 1 0 0", "inf 1 0 0", "-1 1 0 0", "1 -1 0 0", "1 1 -1 0",
	"1 1 1 1", "0.5 1 1 0", "1e999 1 0 0", "1 1e15 0 0", "1 99999999999999999999999 0 0", "1  1 0 0", " 1 1 0 0",
	"1 1 0 0 ", "1\n1 0 0", "1 1 0 0\n", "1 1 0 0\x00", "1\x00 1 0 0", "\xff", "1 1 0x1 0", "2e18 1 0 0", strings.Repeat("1", 10_000),
}

func TestBadStateIsReplaced(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		for i, state := range badStates {
			batch := ones(s, 3, fmt.Sprint(i, "-"))
			must(t, rdb.Set(ctx, batch[1].Account, state, 0).Err())
			if d, err := s.Peek(ctx, "api", fmt.Sprint(i, "-1"), slow); err != nil || d.Remaining != 1000 {
				t.Fatalf("%q: %+v %v", state, d, err)
			}
			if got := rdb.Get(ctx, batch[1].Account).Val(); got != state {
				t.Fatalf("%q: a peek wrote %q", state, got)
			}
			mustRun(t, s, batch)
			for j, e := range batch {
				if e.Grant.Rebuilt != (j == 1) || e.Grant.Used != 1 {
					t.Fatalf("%q: account %d: %+v", state, j, e.Grant)
				}
			}
			if rdb.PTTL(ctx, batch[1].Account).Val() <= 0 {
				t.Fatalf("%q: no TTL", state)
			}
		}
	})
}

// A settle that makes no sense is refused alone.
func TestBadArguments(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		nan := math.NaN()
		for name, spoil := range map[string]func(e *slice.Settle){
			"no burst":        func(e *slice.Settle) { e.Rule.Burst = 0 },
			"burst":           func(e *slice.Settle) { e.Rule.Burst = slice.MaxTokens + 2 },
			"no rate":         func(e *slice.Settle) { e.Rule.Rate = 0 },
			"rate":            func(e *slice.Settle) { e.Rule.Rate = nan },
			"window":          func(e *slice.Settle) { e.Rule.Window = -1 },
			"epoch":           func(e *slice.Settle) { e.Usage.Tag.Epoch = -1 },
			"spent":           func(e *slice.Settle) { e.Usage.Tag.Epoch, e.Usage.Spent = 1, -1 },
			"returned":        func(e *slice.Settle) { e.Usage.Tag.Epoch, e.Usage.Returned = 1, slice.MaxTokens+2 },
			"held":            func(e *slice.Settle) { e.Usage.Tag.Epoch, e.Usage.Held = 1, slice.MaxSlice+1 },
			"charged":         func(e *slice.Settle) { e.Usage.Charged = nan },
			"fallback":        func(e *slice.Settle) { e.Usage.Fallback = -1 },
			"want":            func(e *slice.Settle) { e.Usage.Want = -1 },
			"no divisor":      func(e *slice.Settle) { e.Usage.Want, e.Usage.Least, e.Usage.Unit = 1, 1, 1 },
			"no unit":         func(e *slice.Settle) { e.Usage.Want, e.Usage.Least, e.Usage.Divisor = 1, 1, 1 },
			"no least":        func(e *slice.Settle) { e.Usage.Want, e.Usage.Unit, e.Usage.Divisor = 1, 1, 1 },
			"no cost":         func(e *slice.Settle) { e.Usage.Needs[0].Cost = 0 },
			"cost":            func(e *slice.Settle) { e.Usage.Needs[0].Cost = slice.MaxTokens + 2 },
			"no count":        func(e *slice.Settle) { e.Usage.Needs[0].Count = -1 },
			"too many runs":   func(e *slice.Settle) { e.Usage.Needs = make([]slice.Need, slice.MaxRuns+1) },
			"second run":      func(e *slice.Settle) { e.Usage.Needs = []slice.Need{{Cost: 1, Count: 1}, {Cost: -1, Count: 1}} },
			"infinite charge": func(e *slice.Settle) { e.Usage.Charged = math.Inf(1) },
		} {
			batch := ones(s, 3, name)
			spoil(batch[1])
			s.Settle(ctx, batch)
			if e := batch[1]; e.Outcome != slice.NotRun || !e.Lone || e.Err == nil {
				t.Errorf("%s: %v %v %v", name, e.Outcome, e.Lone, e.Err)
			}
			for _, i := range []int{0, 2} {
				if batch[i].Outcome != slice.Ran || batch[i].Grant.Used != 1 {
					t.Errorf("%s: neighbour %d: %v %v", name, i, batch[i].Outcome, batch[i].Err)
				}
			}
			if n := rdb.Exists(ctx, batch[1].Account).Val(); n != 0 {
				t.Errorf("%s: it wrote", name)
			}
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What Redis itself says before it executes a script is known as a refusal, and what
// it says of a script that has written is not.
func TestRefusalsInRedissOwnWords(t *testing.T) {
	server, ctx := redistest.Start(t), context.Background()
	rdb := server.Client(t)
	must(t, rdb.ACLSetUser(ctx, "notime", "on", "nopass", "~*", "+@all", "-time").Err())
	must(t, rdb.ACLSetUser(ctx, "noeval", "on", "nopass", "~*", "+@all", "-eval").Err())
	as := func(user, password string, db int) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: server.Addr, Username: user, Password: password, DB: db, MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	write := "redis.call('SET', KEYS[1], 'v') "
	for what, c := range map[string]struct {
		rdb  *redis.Client
		args []any
		want slice.Outcome
	}{
		"unknown command":  {rdb, []any{"evilsha", "x", 1, "k"}, slice.NotRun},
		"missing argument": {rdb, []any{"evalsha", "x"}, slice.NotRun},
		"unknown script":   {rdb, []any{"evalsha", "x", 1, "k"}, slice.NotRun},
		"no script at all": {rdb, []any{"eval", "x x", 1, "k"}, slice.NotRun},
		"no permission":    {as("noeval", "x", 0), []any{"eval", write, 1, "k"}, slice.NotRun},
		"no time":          {as("notime", "x", 0), []any{"eval", "local t = redis.pcall('TIME') if t.err then return t end " + write, 1, "k"}, slice.NotRun},
		"wrong password":   {as("nobody", "x", 0), []any{"eval", write, 1, "k"}, slice.NotRun},
		"no database":      {as("", "", 99), []any{"eval", write, 1, "k"}, slice.NotRun},
		"raised by Lua":    {rdb, []any{"eval", write + "return nil + 1", 1, "k"}, slice.Unknown},
		"raised by Redis":  {rdb, []any{"eval", write + "redis.call('LPUSH', KEYS[1], 'v')", 1, "k"}, slice.Unknown},
		"not from scripts": {rdb, []any{"eval", write + "redis.call('CONFIG', 'SET', 'x')", 1, "k"}, slice.Unknown},
	} {
		must(t, rdb.Del(ctx, "k").Err())
		err := c.rdb.Do(ctx, c.args...).Err()
		if got := outcomeOf(err); got != c.want {
			t.Errorf("%s: %v says %v", what, err, got)
		}
		if ran := rdb.Exists(ctx, "k").Val() == 1; ran != (c.want == slice.Unknown) {
			t.Errorf("%s: %v, and whether it wrote is %v", what, err, ran)
		}
	}
}
