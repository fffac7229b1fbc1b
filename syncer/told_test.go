package syncer

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
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
		equal(t, "later", view(), [3]int64{100, 60, int64(25 * time.Second)})
		_, free, reset := l.Told(a)
		equal(t, "to the fast path", free, 60)
		if late := reset - 25*time.Second; late < 0 || late > w.cfg.SyncInterval {
			t.Errorf("to the fast path: %v to a full account, want 25 s and up to a tick", reset)
		}
		time.Sleep(26 * time.Second)
		equal(t, "when it is full", view(), [3]int64{100, 100, 0})
		limit, free, reset := l.Told(a)
		equal(t, "to the fast path", [3]int64{limit, free, int64(reset)}, [3]int64{100, 100, 0})
		l.SetPlan(NewPlan(slice.Rule{Burst: 7}, exactly))
		equal(t, "a limit of 0", view(), [3]int64{7, 0, 0})
	})
}

func TestASlowLinkIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, newFake(t), func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		w.store.set(func() { w.store.beat = func() error { time.Sleep(11 * time.Millisecond); return nil } })
		w.limiter(bucket(100, time.Second), exactly)
		time.Sleep(10 * time.Second)
		w.end()
		if n := strings.Count(log.String(), "two round trips"); n != 1 {
			t.Errorf("said %d times: %s", n, log.String())
		}
	})
}

// A store whose clock is the node's own to the microsecond is heard all the
// same: 0 means that it was never heard.
func TestTheStoresClock(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		const second = int64(time.Second / time.Microsecond)
		equal(t, "the window before the store was heard", w.lanes[0].window(second, w.Now()), 0)
		w.lanes[0].hear(&slice.Grant{Clock: w.Now() / 1000}, w.Now(), w.Now())
		if w.lanes[0].clock.Load() == 0 {
			t.Error("not heard")
		}
		w.lanes[0].hear(&slice.Grant{Clock: 5*second + 250_000}, w.Now(), w.Now())
		equal(t, "the window", w.lanes[0].window(second, w.Now()), 5)
		left, known := w.lanes[0].windowLeft(second, w.Now())
		if !known || left != 750*time.Millisecond {
			t.Errorf("%v left, known %t", left, known)
		}
		equal(t, "a bucket's window", w.lanes[0].window(0, w.Now()), 0)
	})
}
