package syncer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// An account keeps what it needs to talk to the store only while it does. These
// stories end with a node that has nothing left to do.

func (w *world) atRest(t *testing.T) {
	t.Helper()
	equal(t, "accounts on the agenda", w.agenda.len(), 0)
}

func TestAQuietAccountDropsItsContact(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(1000, time.Second), strict)
		hold(t, l, "k")
		time.Sleep(2*time.Minute + 3*time.Second) // its lease ends
		w.atRest(t)
		if peek(l, "k") != nil {
			t.Error("the contact is kept")
		}
	})
}

// A key whose limit depends on the user's name keeps the name while it rests, and
// is nobody's concern.
func TestALongKeyRests(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		plan := NewPlan(bucket(1000, time.Minute), strict)
		l := w.add(LimiterConfig{Name: "l", Plan: plan, PlanFor: func(string) *Plan { return plan }})
		user := strings.Repeat("x", 100)
		a := l.Account("digest", user)
		if v, _, err := a.Ask(context.Background(), 900, 0); !v.Allowed || err != nil {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(40 * time.Second) // two looks, and less than the account takes to fill
		w.atRest(t)
		equal(t, "in touch", a.contact() != nil, false)
		equal(t, "the user's key", a.seat.Load().user, user)
	})
}

// An account that was evicted is looked at until its lease is over, and then
// never again: not even for what it still owes, if nobody pays for telling it.
func TestAnEvictedAccountIsForgotten(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		for _, owes := range []bool{false, true} {
			a := hold(t, l, "k")
			a.mu.Lock()
			a.contact().credit = 0
			if owes {
				a.contact().charged = 5
			}
			a.contact().promise = w.Now() + int64(24*time.Hour)
			a.mu.Unlock()
			if !a.Retire(true) {
				t.Fatal("the account is busy")
			}
			a.Unlink()
			a.giveUp()
			time.Sleep(3 * time.Minute)
			w.atRest(t)
			equal(t, "tokens left", a.Cell.Tokens(), 0)
		}
	})
}

// A slice of unknown standing on a saturated key has nothing to be done about
// until its lease ends: looking at it again and again would keep a core busy.
func TestAMarkedSaturatedAccountIsLeftInPeace(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		a := hold(t, l, "k")
		a.mu.Lock()
		a.contact().lease.Report(&a.Cell, slice.MaxSlice)
		a.contact().lease.Lost()
		a.contact().saturated, a.contact().next = true, w.Now()
		a.schedule(w.Now())
		a.mu.Unlock()
		time.Sleep(time.Second)
		a.mu.Lock()
		wait := time.Duration(a.contact().due - w.Now())
		a.mu.Unlock()
		if wait < time.Second {
			t.Errorf("the next look is in %v", wait)
		}
		time.Sleep(3 * time.Minute)
		w.atRest(t)
	})
}

// A charge does not wait for the end of a lease of unknown standing.
func TestAMarkedAccountStillCharges(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(60_000, time.Minute), strict)
		a := hold(t, l, "k")
		a.mu.Lock()
		a.contact().lease.Report(&a.Cell, slice.MaxSlice)
		a.contact().lease.Lost()
		a.mu.Unlock()
		from := len(w.store.settled())
		a.Charge(held(a) + 7)
		time.Sleep(300 * time.Millisecond)
		log := w.store.settled()[from:]
		if len(log) != 1 || log[0].Usage.Charged <= 7 || log[0].Usage.Tag != (slice.Tag{}) {
			t.Errorf("settled %+v", log)
		}
		time.Sleep(3 * time.Minute) // a node that ended now would say that it could not return all
	})
}

// A debt that could not be told, and that nobody pays for telling again, is
// forgotten when it would have drained.
func TestAnUnpaidDebtIsForgotten(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 10*time.Second), exactly)
		w.store.onSettle(func(*slice.Settle) (slice.Outcome, error) { return slice.NotRun, errGone })
		charge(l, "k", 5)
		time.Sleep(time.Second)
		w.store.fail(slice.Ran)
		equal(t, "it owes", peek(l, "k").charged, 5)
		time.Sleep(8 * time.Second)
		equal(t, "it owes", peek(l, "k").charged, 5)
		time.Sleep(10 * time.Second)
		w.atRest(t)
		equal(t, "keys", l.Keys(), 0)
		equal(t, "operations", w.store.opsOf("l/k"), 0)
	})
}

// The demand of a saturated key ebbs away: when the next paced settle would ask
// for less than one cost, it is not sent, and the next request asks again.
func TestAnEbbingFloodIsLeftToItsRequests(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(100, 10*time.Second)
		l := w.limiter(rule, strict)
		for _, evict := range []bool{false, true} {
			w.store.use("l/k", rule, 100)
			flood(l, "k", 1, 10*time.Millisecond, time.Second)
			a, _ := l.Load("k")
			for busy(a) {
				time.Sleep(time.Millisecond)
			}
			a.mu.Lock()
			equal(t, "saturated", a.contact().saturated, true)
			a.count(w.Now())
			a.contact().demand.count, a.contact().attempts, a.contact().credit = 0, 1, 10
			a.mu.Unlock()
			if evict {
				a.Retire(true)
				a.Unlink()
			}
			before := w.store.opsOf("l/k")
			time.Sleep(time.Second)
			a.mu.Lock()
			equal(t, "saturated", a.contact() != nil && a.contact().saturated, false)
			a.mu.Unlock()
			if n := w.store.opsOf("l/k") - before; n > 1 { // one may return a slice
				t.Errorf("%d operations", n)
			}
		}
		time.Sleep(30 * time.Second)
		w.atRest(t)
	})
}
