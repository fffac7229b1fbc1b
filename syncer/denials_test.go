package syncer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/key"
)

// Each denial of a key counts once, whoever denied it.
func TestDenialsAreCountedByKey(t *testing.T) {
	outage(t, 1, func(t *testing.T, w *world) {
		l := w.add(LimiterConfig{Name: "l", Plan: NewPlan(bucket(10, time.Hour), strict), Policy: key.FailClosed})
		denied := map[string]uint64{}
		ask := func(key string, times int) {
			for range times {
				if !allow(l, key, 1).allowed {
					denied[key]++
				}
			}
		}
		ask("memo", 100)
		ask("rare", 12)
		ask("never", 9)
		w.down()
		ask("outage", 30)
		ask("memo", 20)
		list := l.Denied(100)
		sum := uint64(0)
		for _, d := range list {
			equal(t, "denials of "+d.Key, d.Total, denied[d.Key])
			sum += d.Total
		}
		equal(t, "keys that were denied", len(list), 3)
		c := &l.Counts
		equal(t, "denials in all", c.ExactDenied.Load()+c.MemoDenied.Load()+c.PolicyDenied.Load(), sum)
	})
}

// A steady rate is told as it is, and forgotten within a minute.
func TestTheRateOfDenials(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		l := w.limiter(bucket(10, 24*time.Hour), strict)
		flood(l, "slow", 1, time.Second, time.Minute)
		flood(l, "fast", 1, 20*time.Millisecond, time.Minute)
		list := l.Denied(2)
		if len(list) != 2 || list[0].Key != "fast" || list[1].Key != "slow" {
			t.Fatalf("%+v", list)
		}
		if rate := list[0].Rate; math.Abs(rate-50) > 1 {
			t.Errorf("50 a second are %v", rate)
		}
		if rate := list[1].Rate; rate > 0.01 {
			t.Errorf("one a second, a minute ago, is %v", rate)
		}
		equal(t, "keys, of the most denied one", len(l.Denied(1)), 1)
		equal(t, "of none", len(l.Denied(0)), 0)
		time.Sleep(2 * time.Minute)
		equal(t, "keys denied two minutes ago", len(l.Denied(10)), 0)
	})
}

// Of many keys the first are found, in order, also where the list is cut on the way.
func TestTheMostDeniedOfMany(t *testing.T) {
	const keys = 3000
	var list []KeyDenials
	for i := range keys {
		n := i * 7919 % keys
		list = append(list, KeyDenials{Key: fmt.Sprintf("k%04d", n), Rate: float64(n + 1), Total: uint64(n + 1)})
		if len(list) >= 1024 {
			list = mostDenied(list, 20)
		}
	}
	list = mostDenied(append(list, list...), 20)
	for i, d := range list {
		if want := fmt.Sprintf("k%04d", keys-1-i); d.Key != want || d.Total != uint64(keys-i) {
			t.Errorf("place %d: %+v, want %s", i, d, want)
		}
	}
	equal(t, "keys", len(list), 20)
}
