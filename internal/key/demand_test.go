package key

import (
	"math"
	"testing"
	"time"
)

const tenSeconds = int64(10 * time.Second)

// A steady rate λ is counted as λ·h, however often the count is brought up to
// date: this is what makes the count a target.
func TestASteadyRateCountsItsHorizon(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second, 40 * time.Second} {
		var d decaying
		for now := int64(0); now < 30*tenSeconds; {
			now += int64(every)
			d.add(5*every.Seconds(), now, tenSeconds) // 5 tokens per second
		}
		if math.Abs(d.count-50) > 1e-6 {
			t.Errorf("seen every %v: %v tokens per horizon, want 50", every, d.count)
		}
	}
}

func TestASilenceIsForgottenByHorizons(t *testing.T) {
	d := decaying{count: 100}
	d.add(0, tenSeconds, tenSeconds)
	if want := 100 / math.E; math.Abs(d.count-want) > 1e-9 {
		t.Errorf("after one horizon: %v, want %v", d.count, want)
	}
	d.add(0, 100*tenSeconds, tenSeconds)
	if d.count > 1e-40 {
		t.Errorf("after a hundred horizons: %v", d.count)
	}
}

func TestABurstCountsAtOnce(t *testing.T) {
	var d decaying
	d.add(30, 0, tenSeconds)
	d.add(12, 0, tenSeconds)
	if d.count != 42 {
		t.Errorf("a burst of 30 and 12 at one moment counts %v", d.count)
	}
	if got := d.over(tenSeconds/2, tenSeconds); got != 21 {
		t.Errorf("over half a horizon: %v, want 21", got)
	}
}

// A limit that fills within a nanosecond has a horizon of 0.
func TestAHorizonOfNothingIsNoDivision(t *testing.T) {
	var d decaying
	d.add(7, 1000, 0)
	if math.IsNaN(d.count) || math.IsInf(d.count, 0) {
		t.Errorf("count %v", d.count)
	}
	if v := d.over(1000, 0); math.IsNaN(v) || math.IsInf(v, 0) {
		t.Errorf("over %v", v)
	}
}

// Callers read the clock before they have the lock, so a moment may be older than
// the last one. It counts as the last one.
func TestDemandDoesNotRunBackwards(t *testing.T) {
	const horizon = 2500
	d := decaying{}
	for _, now := range []int64{2_000_000, 0, 3_000_000, 3_000_000} {
		d.add(1, now, horizon)
	}
	if !(d.count >= 1 && d.count < 1.1) {
		t.Errorf("counts %v, want the last request and hardly more", d.count)
	}
}
