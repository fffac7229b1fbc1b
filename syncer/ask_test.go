package syncer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// exactly is a dial without slices: every request asks.
var exactly = Dial{}

// callers asks for one key from several goroutines, and collects the answers
// in the order of asking.
type callers struct {
	l       *Limiter
	wg      sync.WaitGroup
	answers []answer
}

// ask sends a request in the background; it has joined when ask returns, or it
// has its answer.
func (c *callers) ask(n int64) {
	i := len(c.answers)
	c.answers = append(c.answers, answer{})
	done := make(chan answer, 1)
	c.wg.Go(func() { done <- allow(c.l, "k", n) })
	c.wg.Go(func() { c.answers[i] = <-done })
	synctest.Wait()
}

func needsOf(log []slice.Settle) (needs [][]slice.Need) {
	for _, st := range log {
		needs = append(needs, st.Usage.Needs)
	}
	return needs
}

func TestACallerThatLeavesDisturbsNobody(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(5 * time.Millisecond)
		l := w.limiter(bucket(10, time.Second), exactly)
		ctx, cancel := context.WithCancel(context.Background())
		var leaderErr error
		var leader answer
		var wg sync.WaitGroup
		wg.Go(func() { leader, leaderErr = allowCtx(ctx, l, "k", 1) })
		synctest.Wait()
		others := callers{l: l}
		others.ask(1)
		others.ask(2)
		time.Sleep(2 * time.Millisecond)
		began := time.Now()
		cancel()
		wg.Wait()
		if !errors.Is(leaderErr, context.Canceled) || leader != (answer{}) {
			t.Errorf("the leader got %+v, %v", leader, leaderErr)
		}
		equal(t, "the leader waited on for", time.Since(began), time.Duration(0))
		others.wg.Wait()
		for _, got := range others.answers {
			w.must("another caller", got, true, byStore)
		}
		equal(t, "operations", w.store.opsOf("l/k"), 2)
	})
}

func TestAContextThatIsOverAsksNobody(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(10, time.Second), exactly)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := allowCtx(ctx, l, "k", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		equal(t, "operations", w.store.opsOf("l/k"), 0)
	})
}

func TestAWaitEndsAtStoreTimeout(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(100 * time.Millisecond)
		l := w.limiter(bucket(10, time.Second), exactly)
		began := time.Now()
		w.must("a request that waited", allow(l, "k", 1), true, byPolicy)
		equal(t, "it waited", time.Since(began), 20*time.Millisecond)
		equal(t, "requests that waited", l.Counts.Blocked.Load(), 1)
		equal(t, "admitted by policy", l.Counts.PolicyAllowed.Load(), 1)
	})
}

// While a settle is under way callers gather for the next one.
func TestLaterArrivalsShareTheNextSettle(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(5 * time.Millisecond)
		c := callers{l: w.limiter(bucket(10, time.Second), exactly)}
		c.ask(1)
		time.Sleep(time.Millisecond)
		for range 3 {
			c.ask(1)
		}
		c.wg.Wait()
		want := [][]slice.Need{{{Cost: 1, Count: 1}}, {{Cost: 1, Count: 3}}}
		if got := needsOf(w.store.settled()); !equalNeeds(got, want) {
			t.Errorf("needs %v, want %v", got, want)
		}
	})
}

func equalNeeds(a, b [][]slice.Need) bool {
	return slices.EqualFunc(a, b, func(x, y []slice.Need) bool { return slices.Equal(x, y) })
}

// Neighbours of one cost are one run; the order of arrival is kept.
func TestRunsAreMerged(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(5 * time.Millisecond)
		c := callers{l: w.limiter(bucket(10, time.Second), exactly)}
		c.ask(1) // leads
		for _, n := range []int64{1, 1, 6, 2, 2, 1} {
			c.ask(n)
		}
		c.wg.Wait()
		want := []slice.Need{{Cost: 1, Count: 2}, {Cost: 6, Count: 1}, {Cost: 2, Count: 2}, {Cost: 1, Count: 1}}
		if got := w.store.last().Usage.Needs; !slices.Equal(got, want) {
			t.Errorf("needs %v, want %v", got, want)
		}
		// 10 − 1 are free (a little refills in 5 ms): 1, 1 and 6 fit, then
		// neither 2, and 1 does.
		for i, allowed := range []bool{true, true, true, true, false, false, true} {
			w.must("caller", c.answers[i], allowed, byStore)
			if retry := c.answers[i].retry; allowed != (retry == 0) {
				t.Errorf("caller %d is told to retry after %v", i, retry)
			}
		}
	})
}

func TestMoreRunsThanOneSettleCarries(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(2 * time.Millisecond)
		c := callers{l: w.limiter(bucket(1000, time.Second), exactly)}
		c.ask(1)
		for i := range 130 {
			c.ask(1 + int64(i%2))
		}
		c.wg.Wait()
		var runs []int
		for _, st := range w.store.settled() {
			runs = append(runs, len(st.Usage.Needs))
		}
		if want := []int{1, 64, 64, 2}; !slices.Equal(runs, want) {
			t.Errorf("runs %v, want %v", runs, want)
		}
		for _, got := range c.answers {
			w.must("caller", got, true, byStore)
		}
		used, _ := w.store.state("l/k", c.l.Plan().Rule)
		if used <= 0 || used > 196 {
			t.Errorf("%v tokens are used, want 1 + 65·(1+2) less what drained", used)
		}
	})
}

// A caller that ran out of time before its need was sent is not charged twice:
// by the policy and by the store.
func TestWhoGaveUpIsNotSent(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.store.slow(30 * time.Millisecond)
		c := callers{l: w.limiter(bucket(10, time.Second), exactly)}
		c.ask(1)
		time.Sleep(5 * time.Millisecond)
		c.ask(3) // will have left at 25 ms; the settle is back at 30 ms
		c.wg.Wait()
		w.must("the first", c.answers[0], true, byPolicy)
		w.must("the second", c.answers[1], true, byPolicy)
		time.Sleep(5 * time.Second)
		for _, st := range w.store.settled()[1:] {
			if len(st.Usage.Needs) > 0 {
				t.Errorf("a need was sent for nobody: %v", st.Usage.Needs)
			}
		}
	})
}

func TestARetiredAccountAsksToBeLookedUpAgain(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(10, time.Second), strict)
		a := l.Account("k", "k")
		if !a.Retire(true) {
			t.Fatal("an idle account did not retire")
		}
		if _, ok, err := a.Decide(context.Background(), 1, 0, w.Now()); ok || err != nil {
			t.Errorf("ok %t, %v", ok, err)
		}
		if a.Charge(1) || a.Refund(1) {
			t.Error("a retired account served")
		}
		a.Unlink()
	})
}

// Who comes when others have waited in vain for the settle under way does not
// wait as well. The settle of another key is another matter.
func TestNobodyWaitsForAnOverdueSettle(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(10, time.Second), exactly)
		w.must("all is well", allow(l, "k", 1), true, byStore)
		w.store.onCall(func(batch []*slice.Settle) {
			if batch[0].Account == "l/k" {
				time.Sleep(500 * time.Millisecond)
			}
		})
		for i, wait := range []time.Duration{20 * time.Millisecond, 0, 0} {
			began := time.Now()
			w.must("a request of a key that is not answered for", allow(l, "k", 1), true, byPolicy)
			equal(t, "its wait", time.Since(began), wait)
			time.Sleep(time.Millisecond)
			w.must("another key", allow(l, string(rune('a'+i)), 1), true, byStore)
		}
		equal(t, "changes of the breaker", len(w.changes()), 0)
		time.Sleep(500 * time.Millisecond)
		w.store.onCall(nil)
		w.must("answered again", allow(l, "k", 1), true, byStore)
	})
}
