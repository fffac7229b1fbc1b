package hybrid

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/ledger"
)

// stallRounds is how often each kind of work is measured, and a busy loop in
// turn. What else runs on the machine makes some rounds worse, of either; work that
// holds requests up makes all of its own worse.
const stallRounds = 7

// Whatever the node does with a million keys at once, no request waits for all of it: not for a sweep, not for a
// new limit, not for Stats, not for a hook.
func TestProcessWideStalls(t *testing.T) {
	longUnderRace(t)
	keys := 100_000
	if *full {
		keys = 1_000_000
	}
	hook := func(StoreEvent) { time.Sleep(50 * time.Millisecond) }
	opts := Options{MaxKeys: keys + keys/4, SyncInterval: 100 * time.Millisecond, Hooks: Hooks{Store: hook}}
	n, l := onLedger(t, ledger.NewStore(), opts, PerHour(1<<40), &LimiterOptions{Accuracy: Strict})
	for i := range keys {
		l.core.Account(fmt.Sprint("key ", i), fmt.Sprint("key ", i)) // as a first request does, without the store
	}
	for range 3 {
		allow(t, l, "hot", 1)
	}
	if r := allow(t, l, "hot", 1); r.Path != PathSlice || n.Stats().Total.Keys < keys/2 {
		t.Fatalf("%+v, %d keys", r, n.Stats().Total.Keys)
	}
	limit := 0
	for what, busy := range map[string]func(){
		"a sweep":     func() { time.Sleep(100 * time.Millisecond) }, // the ticks': each looks at thousands of keys
		"a new limit": func() { limit++; must(t, l.SetLimit(PerHour(1<<40+int64(limit%2)))) },
		"Stats":       func() { n.Stats() },
		"a slow hook": func() { n.events.storeChanged(true, nil); n.events.storeChanged(false, nil) },
	} {
		quietly, meanwhile := stalled(l, busy)
		t.Logf("%s: the longest call took %v, beside a busy loop %v", what, meanwhile, quietly)
		// A lock over all keys is held for ten milliseconds and more; a kernel that gives
		// the processor to others takes it for 4 ms, and perhaps twice.
		if most := max(9*time.Millisecond, 3*quietly); meanwhile > most {
			t.Errorf("%s: in half of %d rounds a call took %v or longer, allowed %v; beside a busy loop %v", what, stallRounds, meanwhile, most, quietly)
		}
	}
	_ = n.Close() // which does not wait for all of so many
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// stalled returns the longest call while some work goes on again and again, and
// beside a loop that is as busy and touches nothing of the node: the medians of some
// rounds each.
func stalled(l *Limiter, busy func()) (quietly, meanwhile time.Duration) {
	var control, calls stopwatch
	for range stallRounds {
		runtime.GC() // not in the middle
		control.took = append(control.took, longestBeside(l, work))
		calls.took = append(calls.took, longestBeside(l, busy))
	}
	return control.part(0.5), calls.part(0.5)
}

// longestBeside returns the longest call while a goroutine does something again and again.
func longestBeside(l *Limiter, busy func()) time.Duration {
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			busy()
		}
	}()
	defer func() {
		stop.Store(true)
		<-done
	}()
	return longestCall(l)
}

// longestCall asks for a hot key, and now and then makes a fresh one, for a while.
func longestCall(l *Limiter) (longest time.Duration) {
	for i, end := 0, time.Now().Add(110*time.Millisecond); ; i++ {
		start := time.Now()
		if start.After(end) {
			return longest
		}
		if i%64 == 0 {
			key := fmt.Sprint("fresh ", start.UnixNano())
			l.core.Account(key, key)
		}
		_, _ = l.Allow(ctx, "hot")
		longest = max(longest, time.Since(start))
	}
}
