package syncer

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
