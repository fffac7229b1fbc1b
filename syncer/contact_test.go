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
	equal(t, "accounts on the timer queue", w.timers.len(), 0)
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
		if v, _, err := a.Decide(context.Background(), 900, 0, w.Now()); !v.Allowed || err != nil {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(40 * time.Second) // two looks, and less than the account takes to fill
		w.atRest(t)
		equal(t, "in touch", a.active.Load() != nil, false)
		equal(t, "the user's key", a.binding.Load().user, user)
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
		equal(t, "it owes", peek(l, "k").Owed, 5)
		time.Sleep(8 * time.Second)
		equal(t, "it owes", peek(l, "k").Owed, 5)
		time.Sleep(10 * time.Second)
		w.atRest(t)
		equal(t, "keys", l.Keys(), 0)
		equal(t, "operations", w.store.opsOf("l/k"), 0)
	})
}
