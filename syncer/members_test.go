package syncer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/fleet"
)

var floored = Dial{Over: 0.5, Slices: true}

// M follows the heartbeats: within a second of a node's coming, and a TTL and a
// second after its silent end.
func TestTheFleetIsCounted(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, time.Second), strict)
		equal(t, "before the first heartbeat", l.fleet.History().M(), 1)
		w.store.join("l", "other")
		time.Sleep(1500 * time.Millisecond)
		equal(t, "with another", l.fleet.History().M(), 2)
		time.Sleep(fleet.TTL - 1500*time.Millisecond)
		equal(t, "while its registration lasts", l.fleet.History().M(), 2)
		time.Sleep(2 * time.Second)
		equal(t, "afterwards", l.fleet.History().M(), 1)
	})
}

func TestServersIsTheLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t), func(c *Config) { c.Servers = 3 })
		l := w.limiter(bucket(100, time.Second), strict)
		equal(t, "at once", l.fleet.History().M(), 3)
		equal(t, "as heard", l.Fleet(), 0)
		time.Sleep(2 * time.Second)
		equal(t, "alone", l.fleet.History().M(), 3)
		equal(t, "as heard", l.Fleet(), 1)
		for _, m := range []string{"a", "b", "c"} {
			w.store.join("l", m)
		}
		time.Sleep(2 * time.Second)
		equal(t, "with three others", l.fleet.History().M(), 4)
		equal(t, "as heard", l.Fleet(), 4)
		w.end()
	})
}

// A heartbeat goes out about once a second, and soon after a limiter is made.
func TestHeartbeats(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		time.Sleep(5 * time.Second)
		equal(t, "without a limiter", w.store.beaten(), 0)
		w.limiter(bucket(100, time.Second), strict)
		time.Sleep(110 * time.Millisecond)
		equal(t, "a tick after the first limiter", w.store.beaten(), 1)
		time.Sleep(100 * time.Second)
		if n := w.store.beaten(); n < 85 || n > 115 {
			t.Errorf("%d heartbeats in 100 s", n)
		}
	})
}

// A new node's floors are empty until its registration is one TTL old, and are
// earned from then on.
func TestFloorsComeAfterOneTTL(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 10*time.Second), floored) // 50 tokens, 5 per second
		time.Sleep(5 * time.Second)
		equal(t, "before", floorOf(l, "a"), 0)
		time.Sleep(120*time.Millisecond + 2*time.Second) // the first heartbeat was a tick late
		if n := floorOf(l, "b"); n < 9 || n > 10 {
			t.Errorf("%d tokens after two seconds of earning, want 10", n)
		}
		time.Sleep(8 * time.Second)
		if n := floorOf(l, "c"); n < 49 || n > 50 {
			t.Errorf("%d tokens when all are earned, want 50", n)
		}
	})
}

// floorOf takes all that a key's floor has.
func floorOf(l *Limiter, key string) (n int) {
	for {
		a := l.Account(key, key)
		switch {
		case takeFloor(a, 1):
			n++
		case !retired(a):
			return n
		}
	}
}

// takeFloor takes from the floor of an account in use.
func takeFloor(a *Account, n int64) bool {
	a.lock()
	defer a.unlock()
	if a.Known.Retired {
		return false
	}
	now, c := a.limiter().s.Now(), a.active.Load()
	if c == nil {
		return a.coldFloorLocked(n, now)
	}
	t := a.stepLocked(now)
	ok := c.state.TakeFloor(&t, n)
	a.finishLocked(&t)
	return ok
}

func retired(a *Account) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Known.Retired
}

// A node that cannot renew its registration stops using floors before the
// store gives its place away, and starts again empty.
func TestALapsedRegistrationHasNoFloor(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 10*time.Second), floored)
		time.Sleep(time.Minute)
		equal(t, "before", floorOf(l, "a"), 50)
		w.store.set(func() { w.store.beat = func() error { return errors.New("no such command") } })
		gone := w.Now()
		for l.fleet.FloorOpen(w.Now()) {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Duration(w.Now() - gone); took < 2500*time.Millisecond || took > 4*time.Second {
			t.Errorf("the floor was open for another %v", took)
		}
		time.Sleep(10 * time.Second)
		w.store.set(func() { w.store.beat = nil })
		time.Sleep(1300 * time.Millisecond)
		joined := w.Now()
		equal(t, "just after rejoining", floorOf(l, "b"), 0)
		for !l.fleet.FloorOpen(w.Now()) {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Duration(w.Now() - joined); took < 3600*time.Millisecond || took > 5*time.Second {
			t.Errorf("floors came %v after rejoining, want one TTL", took)
		}
		for _, key := range []string{"a", "b", "never used"} {
			equal(t, "tokens of "+key, floorOf(l, key), 0)
		}
		time.Sleep(20 * time.Second)
		equal(t, "when earned again", floorOf(l, "a"), 50)
	})
}

// A floor from before a lapse is empty whoever looks at it first when the new
// registration is old enough: a request, a settle or a sweep.
func TestALapsedFloorIsEmptyWhoeverLooksFirst(t *testing.T) {
	looks := map[string]func(l *Limiter, a *Account, now int64){
		"settle": func(l *Limiter, a *Account, now int64) {
			a.lock()
			defer a.unlock()
			t := a.stepLocked(now)
			a.stateLocked(&t).state.Compose(&t)
		},
		"sweep": func(_ *Limiter, a *Account, _ int64) { a.Retire(false) },
	}
	for name, look := range looks {
		story(t, func(t *testing.T, w *world) {
			l := w.limiter(bucket(100, 1000*time.Second), floored) // earned slowly, or it would be full and forgotten
			time.Sleep(1100 * time.Second)
			a := l.Account("k", "k")
			for range 10 {
				takeFloor(a, 1)
			}
			w.store.set(func() { w.store.beat = func() error { return errors.New("no such command") } })
			time.Sleep(15 * time.Second)
			w.store.set(func() { w.store.beat = nil })
			for !l.fleet.FloorOpen(w.Now()) {
				look(l, a, w.Now())
				time.Sleep(10 * time.Millisecond)
			}
			look(l, a, w.Now())
			equal(t, "after a "+name+", tokens", floorOf(l, "k"), 0)
		})
	}
}

// What floors admit on top of the limit is charged when a key next settles, as
// far as it has not been earned again.
func TestFloorsAreChargedAtASettle(t *testing.T) {
	for _, c := range []struct {
		dial Dial
		want float64
	}{
		{Dial{Over: 0.5, Slices: true}, 50},
		{Dial{Under: 0.5, Slices: true}, 0}, // carved out: nobody's loss
		{Dial{Over: 0.25, Under: 0.25, Slices: true}, 25},
	} {
		story(t, func(t *testing.T, w *world) {
			l := w.limiter(bucket(100, 10*time.Second), c.dial)
			time.Sleep(time.Minute)
			for range 50 {
				w.must("within the floor", allow(l, "k", 1), true, byFloor)
			}
			w.must("beyond it", allow(l, "k", 1), true, byStore)
			u := w.store.last().Usage
			equal(t, "charged", u.Charged, c.want)
			equal(t, "operations", w.store.opsOf("l/k"), 1)
		})
	}
}

// While an account is nearly full its floors are off for a horizon.
func TestFloorsAreOffNearTheLimit(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(100, 10*time.Second)
		l := w.limiter(rule, floored)
		time.Sleep(time.Minute)
		w.store.use("l/k", rule, 90)
		charge(l, "k", 1)
		time.Sleep(300 * time.Millisecond)
		equal(t, "the floor", floorOf(l, "k"), 0)
		time.Sleep(2500 * time.Millisecond)
		if n := floorOf(l, "k"); n < 40 {
			t.Errorf("a floor of %d after a horizon", n)
		}
	})
}

// A user without the right to register has a store all the same, also while no
// settle shows it because all requests are served from slices.
func TestRefusedHeartbeatsAreNoOutage(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.set(func() { w.store.beat = func() error { return errDenied } })
		l := w.limiter(bucket(1000, time.Second), exactly)
		time.Sleep(10 * time.Second)
		w.must("the first request for long", allow(l, "k", 1), true, byStore)
		equal(t, "changes of the breaker", len(w.changes()), 0)
		w.store.set(func() { w.store.beat = nil })
		time.Sleep(2 * time.Second)
	})
}

// A store that settles and takes no registrations is not down, so that nothing
// else would tell that the node takes itself for alone.
func TestRefusedHeartbeatsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		store := newFake(t)
		w := newWorld(t, store, func(c *Config) {
			c.Unregistered = func(limiter string, err error) { told = append(told, limiter+": "+err.Error()) }
		})
		l := w.limiter(bucket(1000, time.Second), exactly)
		time.Sleep(3 * time.Second)
		store.set(func() { store.beat = func() error { return errGone } })
		for range 100 {
			w.must("a request", allow(l, "k", 1), true, byStore)
			time.Sleep(100 * time.Millisecond)
		}
		if len(told) != 1 || told[0] != "l: "+errGone.Error() {
			t.Errorf("told %q", told)
		}
		store.set(func() { store.beat = nil })
		time.Sleep(3 * time.Second)
		store.set(func() { store.beat = func() error { return errGone } })
		time.Sleep(5 * time.Second)
		store.set(func() { store.beat = nil })
		equal(t, "an outage is another matter: told", len(told), 1)
		time.Sleep(2 * time.Second)
		w.end()
	})
}
