package syncer

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

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

// What comes late because of an outage says nothing of the link: in it, and while its backlog
// is worked off, nothing is reported.
func TestAnOutageIsNoSlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, newFake(t), func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		w.lossy = true
		var late atomic.Int64
		wait := func() { time.Sleep(time.Duration(late.Load())) }
		w.store.set(func() {
			w.store.beat = func() error { wait(); return nil }
			w.store.call = func([]*slice.Settle) { wait() }
		})
		l := w.limiter(bucket(100, time.Second), exactly)
		for range 5 {
			for _, d := range []time.Duration{0, 500 * time.Millisecond, 15 * time.Millisecond, 0} {
				late.Store(int64(d))
				calls := 20 // a second, but for the backlog, of a heartbeat or two
				if d == 15*time.Millisecond {
					calls = 3
				}
				for range calls {
					allow(l, "k", 1)
					time.Sleep(50 * time.Millisecond)
				}
			}
		}
		if n := len(w.changes()); n < 10 {
			t.Errorf("%d changes of the breaker: that shows nothing", n)
		}
		w.end()
		if strings.Contains(log.String(), "two round trips") {
			t.Error(log.String())
		}
	})
}
