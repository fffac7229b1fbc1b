package ledger_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/exact"
	"github.com/hybridlimit/hybrid/internal/ledger"
	"github.com/hybridlimit/hybrid/internal/redistest"
	"github.com/hybridlimit/hybrid/slice"
)

var minute = slice.Rule{Burst: 60, Rate: 60 / 60e6}

// settle executes one settle of account k.
func settle(t *testing.T, s *ledger.Store, u slice.Usage) slice.Grant {
	t.Helper()
	st := slice.Settle{Account: "k", Rule: minute, Usage: u}
	s.Settle(ctx, []*slice.Settle{&st})
	if st.Outcome != slice.Ran {
		t.Fatalf("%v %v", st.Outcome, st.Err)
	}
	return st.Grant
}

func beat(s *ledger.Store, member string) slice.Fleet {
	f := slice.Fleet{Limiter: "l"}
	s.Heartbeat(ctx, member, 5*time.Second, []*slice.Fleet{&f})
	return f
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// A failover to a replica that was behind: what happened since is forgotten,
// what has expired since is gone, and the replica can fail over again.
func TestAStaleReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ledger.NewStore()
		settle(t, s, need(20))
		beat(s, "a")
		_ = s.Mark(ctx, []slice.Mark{{Account: "k", Cost: 1, At: 7}})
		old := s.Snapshot()
		settle(t, s, need(30))
		beat(s, "b")
		_ = s.Mark(ctx, []slice.Mark{{Account: "k", Cost: 2, At: 8}})
		for range 2 {
			s.Restore(old)
			equal(t, "used", settle(t, s, need(1)).Used, 21)
			equal(t, "fleet", beat(s, "c").Members, []string{"a", "c"})
			_ = s.Mark(ctx, []slice.Mark{{Account: "k", Cost: 3, At: 9}})
			marks, _ := s.Marks(ctx, 0, 10)
			equal(t, "marks", marks, []slice.Mark{{Account: "k", Cost: 1, At: 7}, {Account: "k", Cost: 3, At: 9}})
		}
		time.Sleep(21 * time.Second)
		s.Restore(old)
		equal(t, "stored", s.Accounts(), map[string]ledger.Account{})
	})
}

func TestLostData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ledger.NewStore()
		tag := settle(t, s, wish(40)).Tag
		s.Lose()
		equal(t, "used by an empty store", settle(t, s, slice.Usage{}).Used, 0)
		g := settle(t, s, slice.Usage{Tag: tag, Spent: 10, Held: 30})
		equal(t, "used", g.Used, 40)
		equal(t, "lent", g.Lent, 30)
	})
}

// A clock that steps forward expires keys and drains; one that steps back
// leaves accounts standing still and members alive, who have to age.
func TestTheClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ledger.NewStore()
		settle(t, s, need(20))
		s.Skew(10 * time.Second)
		equal(t, "used after 10 s", settle(t, s, need(1)).Used, 11)
		beat(s, "a")
		s.Skew(-110 * time.Second)
		g := settle(t, s, need(1))
		equal(t, "used two minutes before", g.Used, 12)
		equal(t, "behind by", g.Now-g.Clock, 120e6)
		equal(t, "life", s.TTL("k"), 2*time.Minute+12*time.Second)
		equal(t, "fleet", beat(s, "b").Members, []string{"a", "b"})
		time.Sleep(4 * time.Second)
		beat(s, "b")
		equal(t, "fleet, later", s.Members("l", 5*time.Second), []string{"a", "b"})
		time.Sleep(time.Second)
		equal(t, "fleet, after the ttl", s.Members("l", 5*time.Second), []string{"b"})
		s.Skew(time.Hour)
		equal(t, "stored", s.Load("k"), ledger.Account{})
	})
}

// An account that is further ahead of the clock does not stand still: what is
// used is used now, and its leases are of a time that nobody knows.
func TestTheClockStepsFarBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ledger.NewStore()
		tag := settle(t, s, wish(40)).Tag
		settle(t, s, need(20))
		s.Skew(-time.Hour)
		g := settle(t, s, need(60))
		equal(t, "refused", g.Admitted, []int64{0})
		equal(t, "used an hour before", g.Used, 20)
		equal(t, "lent", g.Lent, 0)
		equal(t, "said", g.Rebuilt, true)
		equal(t, "life", s.TTL("k"), 20*time.Second)
		time.Sleep(10 * time.Second)
		g = settle(t, s, need(1))
		equal(t, "used 10 s later", g.Used, 11)
		equal(t, "said again", g.Rebuilt, false)
		equal(t, "used with the slice", settle(t, s, slice.Usage{Tag: tag, Spent: 10, Held: 30}).Used, 51)
	})
}

// Nobody is denied for what a higher limit used, and has lent, once its leases
// have ended.
func TestAHigherLimitsLeasesEnd(t *testing.T) {
	rule, low := slice.Rule{Burst: 1000, Rate: 1000 / 3600e6}, slice.Rule{Burst: 10, Rate: 10 / 60e6}
	var a ledger.Account
	a.Settle(t0, rule, wish(1000))
	for _, c := range []struct{ at, free int64 }{{0, 0}, {119, 0}, {120, 0}, {126, 1}, {150, 5}, {180, 10}, {600, 10}} {
		b := a
		g, _ := b.Settle(t0+c.at*1e6, low, slice.Usage{Needs: []slice.Need{{Cost: 1, Count: 100}}})
		if g.Admitted[0] != c.free {
			t.Errorf("after %d s %d are admitted, want %d", c.at, g.Admitted[0], c.free)
		}
	}
}

// As in Redis, a key is seen until its last millisecond is over.
func TestTheLastMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ledger.NewStore()
		time.Sleep(300 * time.Microsecond)
		settle(t, s, need(20))
		equal(t, "life", s.TTL("k"), 20*time.Second)
		time.Sleep(20*time.Second + 699*time.Microsecond)
		equal(t, "stored, in the last", s.Load("k").Stored, true)
		time.Sleep(time.Microsecond)
		equal(t, "stored, after it", s.Load("k").Stored, false)
		equal(t, "taking memory", s.Len(), 1)
		settle(t, s, need(1))
		settle(t, s, slice.Usage{Charged: -1})
		equal(t, "taking memory once empty", s.Len(), 0)
	})
}

// Accounts that nobody asks for any more do not stay in memory.
func TestExpiredAccountsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ledger.NewStore()
		for i := range 100_000 {
			st := slice.Settle{Account: fmt.Sprint(i), Rule: minute, Usage: need(1)} // expires after 1 s
			s.Settle(ctx, []*slice.Settle{&st})
			time.Sleep(time.Millisecond)
		}
		if n := s.Len(); n > 5000 {
			t.Errorf("%d accounts take memory", n)
		}
		equal(t, "stored", len(s.Accounts()), 1000)
	})
}

// Of more than 4096 marks the newest stay.
func TestManyMarks(t *testing.T) {
	real, s := redistest.MiniClient(t), ledger.NewStore()
	e, err := exact.New(real, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(30) {
		var marks []slice.Mark
		for j := range int64(200) {
			marks = append(marks, slice.Mark{Account: fmt.Sprint((i*200 + j*7) % 5000), Cost: 1 + j%2, At: 1000*i + j*13%200})
		}
		equal(t, "error", s.Mark(ctx, marks), e.Mark(ctx, marks))
	}
	got, _ := s.Marks(ctx, 0, 10_000)
	want, _ := e.Marks(ctx, 0, 10_000)
	equal(t, "number", len(got), 4096)
	equal(t, "marks", got, want)
}

// Many callers at once: no token is lent or admitted twice.
func TestConcurrentSettles(t *testing.T) {
	s, rule := ledger.NewStore(), slice.Rule{Burst: 1000, Rate: 1e-12}
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := int64(0)
	for range 8 {
		wg.Go(func() {
			for range 200 {
				st := slice.Settle{Account: "k", Rule: rule, Usage: need(1)}
				s.Settle(ctx, []*slice.Settle{&st})
				mu.Lock()
				total += st.Grant.Admitted[0]
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	equal(t, "admitted", total, 1000)
}
