package syncer

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hybridlimit/hybrid/slice"
)

func someAccounts(n int) []*Account {
	accounts := make([]*Account, n)
	for i := range accounts {
		accounts[i] = &Account{name: fmt.Sprint(i)}
		accounts[i].active.Store(&active{slot: -1})
	}
	return accounts
}

func newTimerQueue() (g *timerQueue, wakes *int) {
	wakes = new(int)
	return &timerQueue{next: math.MaxInt64, wakeup: func() { *wakes++ }}, wakes
}

func keysOf(accounts []*Account) (keys []string) {
	for _, a := range accounts {
		keys = append(keys, a.name)
	}
	return keys
}

func TestTheTimerQueueGoesByTime(t *testing.T) {
	g, _ := newTimerQueue()
	a := someAccounts(4)
	for i, due := range []int64{40, 10, 30, 20} {
		g.set(a[i], due)
	}
	g.set(a[2], 5)  // moved forward
	g.set(a[1], 35) // moved back
	g.set(a[3], 0)  // removed
	g.set(a[3], 0)  // removing what is not there does nothing
	due, next := g.take(35)
	if got := keysOf(due); !slices.Equal(got, []string{"2", "1"}) || next != 40 {
		t.Errorf("due %v, then %d", got, next)
	}
	due, next = g.take(39)
	if len(due) != 0 || next != 40 {
		t.Errorf("due %v, then %d", keysOf(due), next)
	}
	if due, next = g.take(math.MaxInt64); len(due) != 1 || next != math.MaxInt64 || g.len() != 0 {
		t.Errorf("due %v, then %d", keysOf(due), next)
	}
}

// The loop is woken when it would sleep too long, and only then.
func TestTheTimerQueueWakesTheLoop(t *testing.T) {
	g, wakes := newTimerQueue()
	a := someAccounts(3)
	g.set(a[0], 50)
	g.set(a[1], 60)
	g.set(a[2], 50)
	equal(t, "wakes", *wakes, 1)
	g.set(a[1], 40)
	equal(t, "wakes", *wakes, 2)
	g.take(45)
	g.set(a[1], 49)
	equal(t, "wakes", *wakes, 3)
	g.set(a[1], 0)
	equal(t, "wakes", *wakes, 3)
}

func TestEnsureMovesNothing(t *testing.T) {
	g, _ := newTimerQueue()
	a := someAccounts(1)
	g.ensure(a[0], 50)
	g.ensure(a[0], 20)
	if due, _ := g.take(49); len(due) != 0 {
		t.Error("a planned look was moved")
	}
	if due, _ := g.take(50); len(due) != 1 {
		t.Error("no look was planned")
	}
}

// An timer queue and a plain list of moments agree, whatever is done to them.
func TestTheTimerQueueIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _ := newTimerQueue()
		accounts := someAccounts(12)
		naive := map[*Account]int64{}
		now := int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			a := rapid.SampledFrom(accounts).Draw(t, "account")
			switch rapid.IntRange(0, 5).Draw(t, "act") {
			case 0:
				g.set(a, 0)
				delete(naive, a)
			case 1:
				now += rapid.Int64Range(0, 20).Draw(t, "passed")
				due, next := g.take(now)
				checkTake(t, naive, due, next, now)
			default:
				due := now + rapid.Int64Range(1, 50).Draw(t, "due")
				g.set(a, due)
				naive[a] = due
			}
			if g.len() != len(naive) {
				t.Fatalf("%d planned, want %d", g.len(), len(naive))
			}
		}
	})
}

// checkTake compares what was taken with the list, and takes it from there.
func checkTake(t *rapid.T, naive map[*Account]int64, due []*Account, next, now int64) {
	last, want := int64(0), 0
	for _, at := range naive {
		if at <= now {
			want++
		}
	}
	if len(due) != want {
		t.Fatalf("%d due at %d, want %d", len(due), now, want)
	}
	for _, a := range due {
		at, ok := naive[a]
		if !ok || at > now || at < last {
			t.Fatalf("account %s, planned %t for %d, came at %d after %d", a.name, ok, at, now, last)
		}
		last = at
		delete(naive, a)
	}
	earliest := int64(math.MaxInt64)
	for _, at := range naive {
		earliest = min(earliest, at)
	}
	if next != earliest {
		t.Fatalf("next %d, want %d", next, earliest)
	}
}

// Many keys fall back at once while the timer queue moves: whoever plans a look
// must not read the places of others' accounts without the timer queue's lock.
func TestPlanningIsSafeWhileOthersPlan(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(100, time.Second), exactly)
		w.store.fail(slice.NotRun)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 100 {
					allow(l, fmt.Sprintf("new %d %d", i, j), 1)
					allow(l, fmt.Sprintf("known %d", i), 1)
				}
			})
		}
		wg.Wait()
		w.store.fail(slice.Ran)
		time.Sleep(5 * time.Second)
	})
}
