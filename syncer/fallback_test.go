package syncer

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// outage is a node in a fleet of so many whose store fails from now on, seen
// by enough callers that the breaker is open.
func outage(t *testing.T, servers int, tell func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t), func(c *Config) { c.Servers = servers })
		tell(t, w)
		w.store.fail(slice.Ran)
		time.Sleep(5 * time.Second)
		w.end()
	})
}

// down makes the store fail and waits until the breaker is open.
func (w *world) down() {
	w.t.Helper()
	w.store.fail(slice.NotRun)
	l := w.add(LimiterConfig{Name: "probe", Plan: NewPlan(bucket(100, time.Second), exactly), Policy: key.FailClosed})
	for range 100 {
		if allow(l, "k", 1); w.Down() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatal("the breaker stays closed")
}

// count sends n requests at once and counts the admitted.
func count(l *Limiter, key string, n int) (admitted int) {
	for range n {
		if allow(l, key, 1).allowed {
			admitted++
		}
	}
	return admitted
}

// A key that was never heard of starts with the node's full share; then it
// fills with the share of the rate.
func TestFailLocalIsTheFairShare(t *testing.T) {
	outage(t, 4, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 10*time.Second), strict)
		w.down()
		equal(t, "at once", count(l, "k", 100), 25)
		r := allow(l, "k", 1)
		if r.path != byPolicy || r.retry != 400*time.Millisecond {
			t.Errorf("denied with %+v, want a retry in 0.4 s", r)
		}
		time.Sleep(r.retry)
		w.must("at that time", allow(l, "k", 1), true, byPolicy)
		time.Sleep(4 * time.Second)
		equal(t, "after 4 s", count(l, "k", 100), 10)
		time.Sleep(time.Minute)
		equal(t, "after a minute", count(l, "k", 100), 25)
		w.must("a cost above the share", allow(l, "k", 26), false, byPolicy)
	})
}

// Half of the share in a window, where a full bucket and its refill add up.
func TestFailLocalInAWindow(t *testing.T) {
	outage(t, 2, func(t *testing.T, w *world) {
		l := w.limiter(fixed(100, 10*time.Second), strict)
		w.down()
		equal(t, "at once", count(l, "k", 100), 25)
		time.Sleep(4 * time.Second)
		equal(t, "after 4 s", count(l, "k", 100), 10)
	})
}

// Nobody may admit more than the quota between an edge and the next, and an odd
// quota, one among them, is no reason to admit less.
func TestFailLocalOfAnOddWindow(t *testing.T) {
	for quota := int64(1); quota <= 5; quota++ {
		outage(t, 1, func(t *testing.T, w *world) {
			l := w.limiter(fixed(quota, 10*time.Second), strict)
			w.down()
			for window := range 6 {
				admitted := int64(0)
				for range 100 {
					admitted += int64(count(l, "k", 1))
					time.Sleep(99 * time.Millisecond)
				}
				if admitted > quota || window > 0 && admitted < quota/2 || window == 0 && admitted == 0 {
					t.Errorf("%d admitted of a quota of %d in window %d", admitted, quota, window)
				}
			}
		})
	}
}

// Nodes that lose the store one after the other are no reason to admit more.
func TestFailLocalOfAFleetThatShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(t)
		for i := range 9 {
			store.join("l", fmt.Sprint("other", i))
		}
		w := newWorld(t, store, nil)
		l := w.limiter(bucket(100, time.Hour), strict)
		time.Sleep(time.Second)
		equal(t, "nodes", l.Fleet(), 10)
		time.Sleep(8 * time.Second) // the others' registrations lapse
		equal(t, "nodes", l.Fleet(), 1)
		w.down()
		equal(t, "admitted", count(l, "k", 100), 10)
		time.Sleep(10 * time.Minute)
		equal(t, "admitted of another key, ten minutes later", count(l, "later", 100), 100)
		store.fail(slice.Ran)
		time.Sleep(5 * time.Second)
		w.end()
	})
}

// A key starts with its share of what was free when the store last spoke.
func TestFailLocalStartsFromWhatWasTold(t *testing.T) {
	outage(t, 4, func(t *testing.T, w *world) {
		rule := bucket(100, 1000*time.Second)
		l := w.limiter(rule, exactly)
		w.store.use("l/k", rule, 59)
		w.must("the last answer", allow(l, "k", 1), true, byStore)
		w.down()
		equal(t, "of 40 that were free", count(l, "k", 100), 10)
	})
}

// With fewer tokens than nodes, the nodes that rank first for a key get one
// each: as many as there are tokens, others for each key.
func TestFailLocalOfFewTokens(t *testing.T) {
	const nodes, burst, keys = 8, 3, 40
	synctest.Test(t, func(t *testing.T) {
		store := newFake(t)
		store.shared = true
		var fleet []*world
		var limiters []*Limiter
		for i := range nodes {
			w := newWorld(t, store, func(c *Config) { c.Member = fmt.Sprint("node", i) })
			fleet = append(fleet, w)
			limiters = append(limiters, w.limiter(bucket(burst, time.Hour), strict))
		}
		time.Sleep(3 * time.Second) // all know of all
		for _, w := range fleet {
			w.down()
		}
		served := map[int]int{}
		for k := range keys {
			sum := 0
			for i, l := range limiters {
				n := count(l, fmt.Sprint(k), 3)
				sum += n
				served[i] += n
			}
			if sum != burst {
				t.Errorf("key %d: %d admitted, want %d", k, sum, burst)
			}
		}
		for i := range nodes {
			if served[i] < 4 || served[i] > 30 {
				t.Errorf("node %d serves %d of %d", i, served[i], keys*burst)
			}
		}
		store.fail(slice.Ran)
		time.Sleep(5 * time.Second)
		for _, w := range fleet {
			w.end()
		}
	})
}

// A node that has never heard of its fleet and has more servers than tokens
// cannot know its rank: it admits nothing.
func TestFailLocalWithoutAFleet(t *testing.T) {
	outage(t, 10, func(t *testing.T, w *world) {
		w.store.fail(slice.NotRun)
		l := w.limiter(bucket(5, time.Minute), strict)
		w.down()
		equal(t, "admitted", count(l, "k", 10), 0)
	})
}

func TestFailOpenAndFailClosed(t *testing.T) {
	outage(t, 4, func(t *testing.T, w *world) {
		plan := NewPlan(bucket(100, 10*time.Second), strict)
		open := w.add(LimiterConfig{Name: "open", Plan: plan, Policy: key.FailOpen})
		closed := w.add(LimiterConfig{Name: "closed", Plan: plan, Policy: key.FailClosed})
		w.down()
		equal(t, "open", count(open, "k", 500), 500)
		equal(t, "closed", count(closed, "k", 500), 0)
		equal(t, "closed tells", allow(closed, "k", 1).retry, key.ProbeInterval)
		w.store.fail(slice.Ran)
		time.Sleep(3 * time.Second)
		// Of the 500 the share is charged: 25, of which 10 per second drained.
		used := 0.0
		for _, st := range w.store.settled() {
			if st.Account == "open/k" {
				used += st.Usage.Fallback
			}
		}
		equal(t, "charged", used, 25)
		equal(t, "operations of closed", w.store.opsOf("closed/k"), 0)
	})
}

// What was admitted during an outage is charged afterwards, but for what has
// been earned again; and the next outage starts from what the store then says.
func TestAnOutageIsPaidFor(t *testing.T) {
	outage(t, 1, func(t *testing.T, w *world) {
		rule := bucket(100, 1000*time.Second)
		l := w.limiter(rule, exactly)
		w.down()
		equal(t, "admitted", count(l, "k", 200), 100)
		time.Sleep(200 * time.Second)
		w.store.fail(slice.Ran)
		time.Sleep(3 * time.Second)
		equal(t, "down", w.Down(), false)
		used, _ := w.store.state("l/k", rule)
		if used < 78 || used > 80 {
			t.Errorf("%v used: 100 were admitted and 20 earned since", used)
		}
		equal(t, "admitted after it", count(l, "k", 200), 20)
		w.down2()
		equal(t, "admitted in the next outage", count(l, "k", 200), 0)
	})
}

// down2 is down once the probing limiter exists.
func (w *world) down2() {
	w.store.fail(slice.NotRun)
	for range 100 {
		if allow(w.Syncer.limiter("probe"), "k", 1); w.Down() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatal("the breaker stays closed")
}

// What many nodes admitted is charged up to the limit, not into debt: recovery
// is no outage of its own.
func TestRecoveryIsNoDebt(t *testing.T) {
	outage(t, 1, func(t *testing.T, w *world) {
		rule := bucket(100, 1000*time.Second)
		l := w.limiter(rule, exactly)
		w.down()
		equal(t, "admitted", count(l, "k", 200), 100)
		w.store.use("l/k", rule, 70) // by a node whose store was there
		w.store.fail(slice.Ran)
		time.Sleep(3 * time.Second)
		used, _ := w.store.state("l/k", rule)
		if used > 100 || used < 99 {
			t.Errorf("%v used, want all and no more", used)
		}
	})
}

// While the breaker is open nobody waits, nothing but heartbeats is sent, and
// the first of them that is answered closes it.
func TestNobodyWaitsInAnOutage(t *testing.T) {
	outage(t, 1, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, time.Second), strict)
		w.down()
		settles, beats := len(w.store.calls()), w.store.beaten()
		began := time.Now()
		for i := range 1000 {
			allow(l, fmt.Sprint(i%10), 1)
		}
		equal(t, "a thousand requests took", time.Since(began), time.Duration(0))
		time.Sleep(10 * time.Second)
		equal(t, "settles", len(w.store.calls()), settles)
		if n := w.store.beaten() - beats; n < 45 || n > 100 {
			t.Errorf("%d probes in 100 ticks", n)
		}
		equal(t, "opened", w.Calls().BreakerOpens.Load(), 1)
		w.store.fail(slice.Ran)
		time.Sleep(250 * time.Millisecond)
		equal(t, "down", w.Down(), false)
		if got := w.changes(); len(got) != 2 || !got[0] || got[1] {
			t.Errorf("turned %v", got)
		}
	})
}

func (f *fake) beaten() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.beats
}

// An idle node with three requests in one pause of 25 ms stays well.
func TestAPauseOfAnIdleNode(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		c := callers{l: w.limiter(bucket(100, time.Second), exactly)}
		time.Sleep(10 * time.Second)
		w.store.slow(25 * time.Millisecond)
		for range 3 {
			c.ask(1)
		}
		c.wg.Wait()
		w.store.onCall(nil)
		time.Sleep(time.Second)
		equal(t, "opened", w.Calls().BreakerOpens.Load(), 0)
	})
}

// Tokens that were refunded in time are not charged.
func TestAFallbackIsRefunded(t *testing.T) {
	outage(t, 2, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, 1000*time.Second), exactly)
		w.down()
		equal(t, "admitted", count(l, "k", 100), 50)
		a, _ := l.Load("k")
		equal(t, "refunded", a.Undo(10, byPolicy, w.Now()), true)
		equal(t, "admitted again", count(l, "k", 100), 10)
		a.Undo(50, byPolicy, w.Now())
		w.store.fail(slice.Ran)
		time.Sleep(3 * time.Second)
		used, _ := w.store.state("l/k", l.Plan().Rule)
		equal(t, "used", used, 0)
	})
}

// What the policy admits in a window that began during the outage is charged to it.
func TestAnOutageAcrossTheEdgeOfAWindow(t *testing.T) {
	outage(t, 1, func(t *testing.T, w *world) {
		l := w.limiter(fixed(100, 10*time.Second), exactly)
		time.Sleep(8 * time.Second)
		for range 2 { // the second knows the store's clock
			w.must("before", allow(l, "k", 1), true, byStore)
		}
		w.down()
		inWindow, byThePolicy, back := 0, 0, false
		for w.Now() < int64(19900*time.Millisecond) {
			if !back && w.Now() > int64(15*time.Second) {
				w.store.fail(slice.Ran)
				back = true
			}
			if r := allow(l, "k", 1); r.allowed && w.Now() >= int64(10*time.Second) {
				inWindow++
				if r.path == byPolicy {
					byThePolicy++
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		if byThePolicy < 10 || inWindow > 101 {
			t.Errorf("%d admitted in the window, %d of them by policy: want 100, and some by policy", inWindow, byThePolicy)
		}
	})
}

// loser is a store whose next answers to settles of a key are lost, which did not run.
type loser struct {
	*fake
	lose atomic.Int32
}

func (s *loser) Settle(ctx context.Context, batch []*slice.Settle) {
	for _, st := range batch {
		if st.Account == "l/k" && s.lose.Load() > 0 {
			s.lose.Add(-1)
			for _, st := range batch {
				st.Outcome, st.Err = slice.Unknown, ErrTimeout
			}
			return
		}
	}
	s.fake.Settle(ctx, batch)
}

// What the policy has admitted is told again if nobody knows whether it was heard.
func TestFallbackIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &loser{fake: newFake(t)}
		w := newWorld(t, store.fake, func(c *Config) { c.Servers, c.Store = 1, store })
		l := w.limiter(bucket(100, 1000*time.Second), exactly)
		w.down()
		equal(t, "admitted", count(l, "k", 200), 100)
		store.lose.Store(1)
		w.store.fail(slice.Ran)
		time.Sleep(10 * time.Second)
		if more := count(l, "k", 200); more > 5 {
			t.Errorf("%d more admitted after the outage, want what has drained meanwhile", more)
		}
		time.Sleep(10 * time.Second)
		w.end()
	})
}
