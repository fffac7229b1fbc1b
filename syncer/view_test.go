package syncer

import (
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

// What the node knows of a key: all is free until it hears otherwise, then what
// the store said plus the slice, and after the time to a full account all again.
func TestViewIsWhatTheNodeKnows(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		rule := bucket(100, 100*time.Second)
		l := w.limiter(rule, exactly)
		a := l.Account("k", "k")
		view := func() [3]int64 {
			limit, remaining, reset := a.View(w.Now())
			return [3]int64{limit, remaining, int64(reset)}
		}
		equal(t, "never told", view(), [3]int64{100, 100, 0})
		w.store.use("l/k", rule, 30)
		allow(l, "k", 10)
		equal(t, "told", view(), [3]int64{100, 60, int64(40 * time.Second)})
		time.Sleep(15 * time.Second)
		equal(t, "later, what has drained is free again", view(), [3]int64{100, 75, int64(25 * time.Second)})
		fast := func() (limit, free int64, reset time.Duration) {
			plan, known := l.Known(a)
			return known.View(plan, 0)
		}
		_, free, reset := fast()
		if free < 74 || free > 75 { // of the last tick
			t.Errorf("to the fast path: %d free", free)
		}
		if late := reset - 25*time.Second; late < 0 || late > w.cfg.SyncInterval {
			t.Errorf("to the fast path: %v to a full account, want 25 s and up to a tick", reset)
		}
		time.Sleep(26 * time.Second)
		equal(t, "when it is full", view(), [3]int64{100, 100, 0})
		limit, free, reset := fast()
		equal(t, "to the fast path", [3]int64{limit, free, int64(reset)}, [3]int64{100, 100, 0})
		l.SetPlan(NewPlan(slice.Rule{Burst: 7}, exactly))
		equal(t, "a limit of 0", view(), [3]int64{7, 0, 0})
	})
}
