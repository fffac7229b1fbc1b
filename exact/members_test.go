package exact

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

func beat(t testing.TB, s *Store, member string, ttl time.Duration, limiter string) slice.Fleet {
	t.Helper()
	f := &slice.Fleet{Limiter: limiter}
	s.Heartbeat(context.Background(), member, ttl, []*slice.Fleet{f})
	must(t, f.Err)
	return *f
}

func TestMembers(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		for i, member := range []string{"c", "a", "b"} {
			if f := beat(t, s, member, time.Minute, "api"); !f.Joined || len(f.Members) != i+1 {
				t.Fatalf("%+v", f)
			}
		}
		f := beat(t, s, "a", time.Minute, "api")
		if f.Joined || !reflect.DeepEqual(f.Members, []string{"a", "b", "c"}) {
			t.Fatalf("%+v", f)
		}
		if f := beat(t, s, "a", time.Minute, "other"); !f.Joined || len(f.Members) != 1 {
			t.Fatalf("%+v", f)
		}
		must(t, s.Leave(ctx, "b", []string{"api", "other", "never"}))
		if f := beat(t, s, "a", time.Minute, "api"); !reflect.DeepEqual(f.Members, []string{"a", "c"}) {
			t.Fatalf("%+v", f)
		}
		if ttl := rdb.PTTL(ctx, s.membersKey("api")).Val(); ttl <= time.Minute || ttl > 2*time.Minute {
			t.Fatal(ttl)
		}
	})
}

func TestMembersExpire(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	s, now := newStore(t, rdb), time.UnixMilli(1795980557158)
	at := func(d time.Duration) { mini.SetTime(now.Add(d)) }
	at(0)
	beat(t, s, "a", 5*time.Second, "api")
	beat(t, s, "b", 5*time.Second, "api")
	at(4999 * time.Millisecond)
	if f := beat(t, s, "a", 5*time.Second, "api"); f.Joined || len(f.Members) != 2 {
		t.Fatalf("%+v", f)
	}
	at(5 * time.Second)
	if f := beat(t, s, "a", 5*time.Second, "api"); len(f.Members) != 1 {
		t.Fatalf("%+v", f)
	}
	if f := beat(t, s, "b", 5*time.Second, "api"); !f.Joined || len(f.Members) != 2 {
		t.Fatalf("a registration that lapsed is a new one: %+v", f)
	}
	at(-time.Hour) // the clock steps back: nobody leaves by it, nobody stays for ever
	if f := beat(t, s, "a", 5*time.Second, "api"); f.Joined || len(f.Members) != 2 {
		t.Fatalf("%+v", f)
	}
	at(-time.Hour + 5*time.Second)
	if f := beat(t, s, "a", 5*time.Second, "api"); !reflect.DeepEqual(f.Members, []string{"a"}) {
		t.Fatalf("%+v", f)
	}
}

func TestHeartbeatOfManyLimiters(t *testing.T) {
	cluster := redistest.StartCluster(t, 2)
	for name, s := range map[string]*Store{
		"cluster": newStore(t, cluster.Client(t)),
		"client":  newStore(t, redistest.MiniClient(t)),
	} {
		var fleets []*slice.Fleet
		var limiters []string
		for i := range 50 {
			limiters = append(limiters, fmt.Sprint("l{", i, "}"))
			fleets = append(fleets, &slice.Fleet{Limiter: limiters[i]})
		}
		s.Heartbeat(context.Background(), "a", time.Minute, fleets)
		for _, f := range fleets {
			if f.Err != nil || !f.Joined || len(f.Members) != 1 {
				t.Fatalf("%s: %+v", name, f)
			}
		}
		must(t, s.Leave(context.Background(), "a", limiters))
		s.Heartbeat(context.Background(), "b", time.Minute, fleets)
		if f := fleets[49]; !reflect.DeepEqual(f.Members, []string{"b"}) {
			t.Fatalf("%s: %+v", name, f)
		}
	}
}

func TestHeartbeatFails(t *testing.T) {
	rdb := redistest.MiniClient(t)
	s, ctx := newStore(t, rdb), context.Background()
	must(t, rdb.Set(ctx, s.membersKey("bad"), 1, 0).Err())
	fleets := []*slice.Fleet{{Limiter: "bad"}, {Limiter: "good"}}
	s.Heartbeat(ctx, "a", time.Minute, fleets)
	if fleets[0].Err == nil || fleets[1].Err != nil || !fleets[1].Joined {
		t.Fatalf("%+v %+v", fleets[0], fleets[1])
	}
	if err := s.Leave(ctx, "a", []string{"good", "bad"}); err == nil {
		t.Fatal("no error")
	}
	if f := beat(t, s, "b", time.Minute, "good"); !reflect.DeepEqual(f.Members, []string{"b"}) {
		t.Fatalf("%+v", f)
	}
	must(t, s.Leave(ctx, "a", nil))
	bad := &slice.Fleet{Limiter: "good"}
	s.Heartbeat(ctx, "a", 0, []*slice.Fleet{bad})
	if bad.Err == nil {
		t.Fatal("a ttl of 0 was accepted")
	}
}

func TestMarks(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb *redis.Client) {
		s, ctx := newStore(t, rdb), context.Background()
		const now = 1795980557158196
		get := func(since int64, most int) []slice.Mark {
			t.Helper()
			marks, err := s.Marks(ctx, since, most)
			must(t, err)
			return marks
		}
		if m := get(0, 10); len(m) != 0 {
			t.Fatal(m)
		}
		a, b := slice.Mark{Account: s.Account("api", "x:{y}\n\xff"), Cost: 7, At: now}, slice.Mark{Account: "b", Cost: 1 << 53, At: now + 1}
		must(t, s.Mark(ctx, nil))
		must(t, s.Mark(ctx, []slice.Mark{b, a}))
		if m := get(now-1, 10); !reflect.DeepEqual(m, []slice.Mark{a, b}) {
			t.Fatalf("%+v", m)
		}
		if m := get(now, 10); !reflect.DeepEqual(m, []slice.Mark{b}) {
			t.Fatalf("%+v", m)
		}
		if m := get(0, 1); !reflect.DeepEqual(m, []slice.Mark{a}) {
			t.Fatalf("%+v", m)
		}
		if m := get(0, 0); len(m) != 0 {
			t.Fatal(m)
		}
		a.At += 61_000_000
		must(t, s.Mark(ctx, []slice.Mark{a})) // moves, and the old one of b goes
		if m := get(0, 10); !reflect.DeepEqual(m, []slice.Mark{a}) {
			t.Fatalf("%+v", m)
		}
		if ttl := rdb.PTTL(ctx, s.marksKey()).Val(); ttl <= 0 || ttl > markTTL {
			t.Fatal(ttl)
		}
		var many []slice.Mark
		for i := range maxMarks + 10 {
			many = append(many, slice.Mark{Account: fmt.Sprint(i), Cost: 1, At: a.At + int64(i)})
		}
		must(t, s.Mark(ctx, many))
		if n := rdb.ZCard(ctx, s.marksKey()).Val(); n != maxMarks {
			t.Fatal(n)
		}
		must(t, rdb.ZAdd(ctx, s.marksKey(), redis.Z{Score: 9e15, Member: "garbage"}).Err())
		if m := get(a.At+maxMarks+8, 10); len(m) != 1 || m[0].Account != fmt.Sprint(maxMarks+9) {
			t.Fatalf("%+v", m)
		}
	})
}

func TestMarksFail(t *testing.T) {
	rdb := redistest.MiniClient(t)
	s, ctx := newStore(t, rdb), context.Background()
	must(t, rdb.Set(ctx, s.marksKey(), 1, 0).Err())
	if err := s.Mark(ctx, []slice.Mark{{Account: "a", Cost: 1, At: 1}}); err == nil {
		t.Error("no error")
	}
	if _, err := s.Marks(ctx, 0, 1); err == nil {
		t.Error("no error")
	}
}
