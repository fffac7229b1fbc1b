package key

import (
	"math"
	"testing"
	"time"
)

func TestTargetIsWholeCosts(t *testing.T) {
	for _, c := range []struct {
		count float64
		unit  int64
		want  int64
	}{
		{0, 1, 0},
		{1.36, 1, 0}, // a request, and the one before it longer than a horizon ago
		{1.37, 1, 2},
		{9, 1, 8},
		{20, 5, 20},
		{32, 5, 30},
		{6.8, 5, 0},
		{6.9, 5, 10},
		{1e300, 1, maxTarget},
		{math.Inf(1), 1, maxTarget},
		{1 << 41, 1 << 40, 0}, // no room for such costs
		{1e300, 1 << 29, maxTarget},
	} {
		if got := target(c.count, c.unit); got != c.want {
			t.Errorf("target(%v, %d) = %d, want %d", c.count, c.unit, got, c.want)
		}
	}
}

// A refill that may wait for the tick must be asked for a tick earlier, where
// ticks are short beside the horizon.
func TestLowWaterCoversTheTimeOfARefill(t *testing.T) {
	const horizon, ms = int64(time.Second), int64(time.Millisecond)
	for _, c := range []struct {
		count                 float64 // tokens per horizon
		latency, tick, tokens int64
		want                  int64
	}{
		{1000, 10 * ms, 100 * ms, 1000, 20},      // twice the latency, in case it grows
		{1600, 10 * ms, horizon / 16, 1000, 132}, // and the tick
		{1000, 10 * ms, horizon/16 + 1, 1000, 20},
		{1000, 10 * ms, 100 * ms, 30, 15}, // never more than half
		{10, 10 * ms, 100 * ms, 10, 0},    // a rare key uses its slice up first
		{25, 10 * ms, 100 * ms, 10, 1},    // half a token rounds up
		{0, 10 * ms, 100 * ms, 100, 0},
		{1000, 0, 100 * ms, 100, 0},
	} {
		d := decaying{count: c.count}
		if got := lowWater(&d, horizon, c.latency, c.tick, c.tokens); got != c.want {
			t.Errorf("lowWater of %v tokens, latency %d, tick %d, holding %d = %d, want %d", c.count, c.latency, c.tick, c.tokens, got, c.want)
		}
	}
}

func TestPaceStaysWithinItsBounds(t *testing.T) {
	perSecond := func(n float64) float64 { return n / 1e9 }
	const s = int64(time.Second)
	never := math.Inf(1)
	for _, c := range []struct {
		name string
		m    int
		cost int64
		rate float64
		fill int64
		gap  float64 // ns between requests
		want int64
	}{
		{"5.75 costs per node: 5.75·20/1000 s, between a 20th and an 8th of a second", 20, 1, perSecond(1000), s, never, 115 * s / 1000},
		{"no more than an 8th of the fill", 40, 1, perSecond(1000), s, never, s / 8},
		{"55 requests pay for an operation", 20, 1, perSecond(1000), s, 2e6, 110 * s / 1000},
		{"but no more than 20 of them in a fill", 20, 1, perSecond(1000), s, 1, s / 20},
		{"one node alone may ask at 5 % of the fill", 1, 1, perSecond(1000), s, never, s / 20},
		{"in between it is what the costs ask for", 15, 1, perSecond(1000), s, never, 86_250_000},
		{"never under 20 ms", 1, 1, perSecond(1e6), s / 100, never, 20 * s / 1000},
		{"never over 10 s", 100, 1, perSecond(1.0 / 60), 3600 * s, never, 10 * s},
		{"a rate near nothing does not overflow", 1000, 1 << 40, 1e-300, math.MaxInt64 / 4, never, 10 * s},
	} {
		if got := pollInterval(c.m, c.cost, c.rate, c.fill, c.gap); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, time.Duration(got), time.Duration(c.want))
		}
	}
}

func TestMarginIsOneDeviation(t *testing.T) {
	for expected, want := range map[float64]int64{0: 5, 5: 10, 20: 30, 500: 550} {
		if got := wholeCosts(expected, 5); got != want {
			t.Errorf("wholeCosts(%v, 5) = %v, want %v", expected, got, want)
		}
	}
}

// Nodes that ask in step would all find nothing: intervals differ by ±20 %.
func TestJitterSpreads(t *testing.T) {
	for chance, want := range map[float64]int64{0: 800_000, 0.5: 1_000_000, 0.999999: 1_199_999} {
		e := Env{Chance: chance}
		equal(t, "a million", e.jittered(1_000_000), want)
		equal(t, "nothing", e.jittered(0), 0)
	}
}

func TestSaturatingAdd(t *testing.T) {
	if got := saturatingAdd(5, math.MaxInt64-5); got != math.MaxInt64-1 {
		t.Errorf("5 + (max − 5) = %d", got)
	}
	if got := saturatingAdd(6, math.MaxInt64-5); got != math.MaxInt64-1 {
		t.Errorf("6 + (max − 5) = %d, want it saturated", got)
	}
	if got := saturatingAdd(2, 3); got != 5 {
		t.Errorf("2 + 3 = %d", got)
	}
}
