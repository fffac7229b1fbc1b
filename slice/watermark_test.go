package slice

import (
	"math"
	"sync"
	"testing"
	"time"
)

func TestTicksRoundDown(t *testing.T) {
	for ns, want := range map[int64]Tick{0: 0, 1: 0, int64(TickLength) - 1: 0, int64(TickLength): 1, int64(time.Second): 100} {
		if got := TickAt(ns); got != want {
			t.Errorf("%d ns is tick %d, want %d", ns, got, want)
		}
	}
}

func TestTicksCompareAcrossTheWrap(t *testing.T) {
	last := TickAt(math.MaxUint32 * int64(TickLength))
	next := TickAt((math.MaxUint32 + 1) * int64(TickLength))
	if last != math.MaxUint32 || next != 0 || !next.After(last) || last.After(next) || next.After(next) {
		t.Error("the tick after the last is the first")
	}
}

func TestACellLivesAcrossTheWrap(t *testing.T) {
	var dead Watermark
	dead.Pass(math.MaxInt32) // by steps: a tick is after another only within half of the circle
	dead.Pass(math.MaxUint32 - 1)
	var c Cell
	c.renew(3, 10) // 5 ticks on
	for _, now := range []Tick{math.MaxUint32 - 1, math.MaxUint32, 0, 2} {
		dead.Pass(now)
		if _, ok := c.Take(1, &dead); !ok || dead.Now() != now {
			t.Fatalf("dead at tick %d, with the watermark at %d", now, dead.Now())
		}
	}
	dead.Pass(3)
	if _, ok := c.Take(1, &dead); ok || !c.Expired(&dead) || c.Alive(&dead) != 0 {
		t.Error("spent after its expiry")
	}
}

func TestTheWatermarkNeverMovesBack(t *testing.T) {
	var w Watermark
	var wg sync.WaitGroup
	for g := range Tick(4) {
		wg.Go(func() {
			for i := range Tick(1000) {
				before := w.Now()
				w.Pass(i*4 + g)
				if now := w.Now(); before.After(now) || (i*4 + g).After(now) {
					panic("moved back")
				}
			}
		})
	}
	wg.Wait()
	if w.Now() != 3999 {
		t.Errorf("at %d", w.Now())
	}
}
