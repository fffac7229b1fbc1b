package syncer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// This file is what must not get lost in an outage, and what must not come of one.

// heal makes the store work and waits until the node has noticed.
func (w *world) heal() {
	w.t.Helper()
	w.store.fail(slice.Ran)
	for range 100 {
		if !w.Down() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatal("the breaker stays open")
}

// A limit that is lowered in an outage takes the slices of the one before back, at
// once if it is 0, and otherwise when the store is there.
func TestALimitLoweredInAnOutage(t *testing.T) {
	for _, lowered := range []slice.Rule{{}, bucket(1, time.Minute)} {
		outage(t, 1, func(t *testing.T, w *world) {
			l := w.add(LimiterConfig{Name: "l", Plan: NewPlan(bucket(100_000, time.Minute), strict), Policy: key.FailClosed})
			flood(l, "k", 1, time.Millisecond, 4*time.Second)
			a, _ := l.Load("k")
			if a.Cell.Tokens() < 100 {
				t.Fatalf("a slice of %d", a.Cell.Tokens())
			}
			w.down()
			l.SetPlan(NewPlan(lowered, strict))
			if lowered.Burst == 0 {
				equal(t, "tokens of a limit of 0", a.Cell.Tokens(), 0)
			}
			w.heal()
			time.Sleep(3 * time.Second)
			if n := a.Cell.Tokens(); n > 1 {
				t.Errorf("%d tokens of the old limit's slice are left", n)
			}
			if allowed, _ := flood(l, "k", 1, 10*time.Millisecond, 20*time.Second); sum(allowed) > 2 {
				t.Errorf("%v admitted by a limit of %d per minute", allowed, lowered.Burst)
			}
		})
	}
}

// A settle that stands in line has said nothing yet: a limit of 0 need not wait for it.
func TestALimitOfZeroDoesNotStandInLine(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		const keys = 900
		for i := range 5 * keys {
			allow(l, fmt.Sprint("k", i%keys), 1)
			time.Sleep(10 * time.Microsecond)
		}
		holding := func() (n int) {
			for i := range keys {
				if a, ok := l.Load(fmt.Sprint("k", i)); ok && a.Cell.Alive(&w.Dead) > 0 {
					n++
				}
			}
			return n
		}
		if n := holding(); n < 800 {
			t.Fatalf("%d of %d keys have slices", n, keys)
		}
		w.store.slow(500 * time.Millisecond)
		l.SetPlan(NewPlan(bucket(59_000, time.Minute), strict)) // all want to give back
		synctest.Wait()
		l.SetPlan(NewPlan(slice.Rule{}, strict))
		equal(t, "keys of a limit of 0 with tokens, told or not", holding(), 0)
		time.Sleep(time.Second)
	})
}

// What a service refunds in an outage was not charged for yet, or not in full: it
// is taken from that, and not from what others have used.
func TestRefundsInAnOutageCreditNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(t)
		for i := range 19 {
			store.join("l", fmt.Sprint("other", i))
		}
		w := newWorld(t, store, nil)
		rule := bucket(1000, 1000*time.Hour)
		l := w.add(LimiterConfig{Name: "l", Plan: NewPlan(rule, exactly), Policy: key.FailOpen})
		time.Sleep(time.Second)
		store.use("l/k", rule, 1000)
		w.down()
		for range 1000 {
			allow(l, "k", 1)
			a, _ := l.Load("k")
			a.Refund(1)
		}
		w.heal()
		time.Sleep(3 * time.Second)
		if n := count(l, "k", 2000); n > 1 {
			t.Errorf("%d admitted of an account that was used up all the time", n)
		}
		w.end()
	})
}

func sum(m map[path]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// Requests wait for the timer queue's lock, and probes for the loop: neither must
// wait for a million keys.
func TestALargeTimerQueueIsTakenInParts(t *testing.T) {
	g := timerQueue{wakeup: func() {}}
	for i := range 1000 {
		g.set(someAccounts(1)[0], int64(i+1))
	}
	due, next := g.take(2000)
	equal(t, "taken at once", len(due), mostDue)
	equal(t, "next", next, mostDue+1)
	equal(t, "looks at 744 accounts, every", time.Duration(g.downtime()), key.ProbeInterval)
	for i := range 200_000 {
		g.set(someAccounts(1)[0], int64(i+1))
	}
	if d := time.Duration(g.downtime()); d < 4*time.Second || d > 5*time.Second {
		t.Errorf("200,000 accounts are looked at every %v", d)
	}
}
