package syncer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
	"github.com/hybridlimit/hybrid/slice"
)

// halves is a store in two parts: accounts of keys that begin with "b" are in the
// second, and no registrations.
type halves struct {
	*fake
	gone   atomic.Bool     // the second part answers nothing
	probes [2]atomic.Int64 // of each part
}

func (h *halves) Lanes() int           { return 2 }
func (h *halves) FleetLane(string) int { return 0 }

func (h *halves) Lane(account string) int {
	if strings.Contains(account, "/b") {
		return 1
	}
	return 0
}

func (h *halves) Settle(ctx context.Context, batch []*slice.Settle) {
	for _, st := range batch {
		if h.Lane(st.Account) != h.Lane(batch[0].Account) {
			h.t.Error("one call to both parts of the store")
		}
	}
	if h.Lane(batch[0].Account) == 1 && h.gone.Load() {
		<-ctx.Done()
		for _, st := range batch {
			st.Outcome, st.Err = slice.Unknown, ctx.Err()
		}
		return
	}
	h.fake.Settle(ctx, batch)
}

func (h *halves) Probe(ctx context.Context, lane int) error {
	h.probes[lane].Add(1)
	if lane == 1 && h.gone.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return whole{h.fake}.Probe(ctx, lane)
}

// onHalves tells a story of a node on a store in two parts.
func onHalves(t *testing.T, tell func(w *world, h *halves, l *Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &halves{fake: newFake(t)}
		w := newWorld(t, h.fake, func(c *Config) { c.Store = h })
		tell(w, h, w.add(LimiterConfig{Name: "l", Plan: NewPlan(bucket(1000, time.Hour), exactly), Policy: key.FailClosed}))
		w.end()
	})
}

// A part of the store that hangs is the outage of its keys alone: requests of
// others are answered as if nothing were, whatever is asked of it meanwhile.
func TestAPartThatHangsIsNobodyElsesMatter(t *testing.T) {
	onHalves(t, func(w *world, h *halves, l *Limiter) {
		w.must("one part", allow(l, "a", 1), true, byStore)
		w.must("the other", allow(l, "b", 1), true, byStore)
		h.gone.Store(true)
		for i := range 200 {
			for j := range 10 {
				go allow(l, fmt.Sprintf("b%d.%d", i, j), 1)
			}
			began := time.Now()
			w.must("a key of the part that is there", allow(l, "a", 1), true, byStore)
			equal(w.t, "its wait", time.Since(began), 0)
			time.Sleep(10 * time.Millisecond)
		}
		w.must("a key of the part that hangs", allow(l, "b", 1), false, byPolicy)
		equal(w.t, "a part is down", w.Down(), true)
		equal(w.t, "all is down", w.link.batcher.AllDown(), false)
		h.gone.Store(false)
		time.Sleep(2 * w.cfg.SyncInterval)
		equal(w.t, "a part is down", w.Down(), false)
		w.must("it is back", allow(l, "b", 1), true, byStore)
		if changes := w.changes(); !slices.Equal(changes, []bool{true, false}) {
			w.t.Errorf("changes %v", changes)
		}
		if h.probes[1].Load() == 0 {
			w.t.Error("nobody probed")
		}
	})
}

// Parts that fail one after the other are one outage, told once.
func TestPartsAreOneOutage(t *testing.T) {
	onHalves(t, func(w *world, h *halves, l *Limiter) {
		h.gone.Store(true)
		time.Sleep(time.Second)
		ask := func(key string) {
			for range 20 {
				go allow(l, key, 1)
				time.Sleep(10 * time.Millisecond)
			}
		}
		ask("b")
		w.store.fail(slice.NotRun)
		ask("a")
		equal(w.t, "all is down", w.link.batcher.AllDown(), true)
		w.store.fail(slice.Ran)
		time.Sleep(time.Second)
		equal(w.t, "all is down", w.link.batcher.AllDown(), false)
		equal(w.t, "a part is down", w.Down(), true)
		h.gone.Store(false)
		time.Sleep(time.Second)
		if changes := w.changes(); !slices.Equal(changes, []bool{true, false}) {
			w.t.Errorf("changes %v", changes)
		}
		equal(w.t, "outages", w.Calls().BreakerOpens.Load(), 1)
	})
}

// A shard that fails beside another is probed at the next tick as well, and not when its
// heartbeat would have been due.
func TestASecondShardThatFailsIsProbedSoon(t *testing.T) {
	onHalves(t, func(w *world, h *halves, l *Limiter) {
		w.store.fail(slice.NotRun)
		for !w.Down() {
			time.Sleep(10 * time.Millisecond)
		}
		for range 5 {
			h.gone.Store(true)
			for !w.link.batcher.AllDown() {
				go allow(l, "b", 1)
				time.Sleep(10 * time.Millisecond)
			}
			before := h.probes[1].Load()
			time.Sleep(w.cfg.SyncInterval + 10*time.Millisecond)
			if h.probes[1].Load() == before {
				w.t.Error("no probe in the tick after a second shard has failed")
			}
			h.gone.Store(false)
			time.Sleep(3*time.Second + 130*time.Millisecond)
		}
		w.store.fail(slice.Ran)
		time.Sleep(time.Second)
	})
}
