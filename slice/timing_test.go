package slice

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRetryAfter(t *testing.T) {
	perSecond := Rule{Burst: 10, Rate: 1e-6}
	window := Rule{Burst: 10, Rate: 10 / 60e6, Window: 60_000_000}
	const edge = 29_933_000 * 60_000_000
	for name, c := range map[string]struct {
		rule Rule
		g    Grant
		cost int64
		want time.Duration
	}{
		"full":                   {perSecond, Grant{Used: 10}, 1, time.Second + time.Microsecond}, // the slack rounds up
		"half a token short":     {perSecond, Grant{Used: 9.5}, 1, 500*time.Millisecond + time.Microsecond},
		"in debt":                {perSecond, Grant{Used: 20}, 10, 20*time.Second + time.Microsecond},
		"above the burst":        {perSecond, Grant{}, 11, Never},
		"no limit":               {Rule{}, Grant{}, 1, Never},
		"it fits":                {perSecond, Grant{}, 1, time.Microsecond},
		"clock behind":           {perSecond, Grant{Used: 10, Now: 5_000_000, Clock: 2_000_000}, 1, 4*time.Second + time.Microsecond},
		"window, 59 s in":        {window, Grant{Used: 10, Now: edge + 59e6, Clock: edge + 59e6}, 1, time.Second},
		"window just open":       {window, Grant{Used: 10, Now: edge, Clock: edge}, 1, time.Minute},
		"window, clock behind":   {window, Grant{Used: 10, Now: edge + 59e6, Clock: edge + 58e6}, 1, 2 * time.Second},
		"window, above":          {window, Grant{}, 11, Never},
		"lent by a higher limit": {perSecond, Grant{Used: 9200, Lent: 9200, Now: 90e6, Clock: 90e6}, 1, 101*time.Second + time.Microsecond},
		"lent beyond all reason": {perSecond, Grant{Used: 1e18, Lent: 1e18, Now: 60e6, Clock: 60e6}, 10, 140*time.Second + time.Microsecond},
		"longer than durations":  {Rule{Burst: 1 << 53, Rate: 1e-12}, Grant{Used: 1 << 53}, 1 << 53, longest},
	} {
		if got := RetryAfter(c.rule, c.g, c.cost); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestResetAfter(t *testing.T) {
	rule := Rule{Burst: 10, Rate: 1e-6}
	window := Rule{Burst: 10, Rate: 1e-6, Window: 10_000_000}
	for name, c := range map[string]struct {
		rule Rule
		g    Grant
		want time.Duration
	}{
		"empty":           {rule, Grant{}, 0},
		"half":            {rule, Grant{Used: 5}, 5 * time.Second},
		"clock behind":    {rule, Grant{Used: 5, Now: 3, Clock: 1}, 5*time.Second + 2*time.Microsecond},
		"window":          {window, Grant{Used: 5, Now: 13_000_000, Clock: 13_000_000}, 7 * time.Second},
		"window unused":   {window, Grant{Now: 13_000_000, Clock: 13_000_000}, 0},
		"no limit":        {Rule{}, Grant{Used: 5}, 0},
		"beyond all time": {Rule{Burst: 10, Rate: 1e-300}, Grant{Used: 5}, longest},
	} {
		if got := ResetAfter(c.rule, c.g); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// After exactly RetryAfter, the store's arithmetic admits, from whatever it last wrote; and not much too late.
func TestRetryAfterSuffices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 40_000_000)).Draw(t, "burst")
		period := rapid.Int64Range(1, 366*86_400_000_000).Draw(t, "period")
		rate := float64(burst) / float64(period)
		stored := rapid.Float64Range(0, 2*float64(burst)).Draw(t, "stored")
		polled := rapid.Int64Range(0, int64(stored/rate)).Draw(t, "polled")
		cost := rapid.Int64Range(1, burst).Draw(t, "cost")
		used := max(0, stored-float64(rate*float64(polled)))
		if used+float64(cost) <= float64(burst) {
			t.Skip("admitted at once")
		}
		rule := Rule{Burst: burst, Rate: rate}
		wait := RetryAfter(rule, Grant{Used: used}, cost).Microseconds()
		later := max(0, stored-float64(rate*float64(polled+wait)))
		if later+float64(cost) > float64(burst) {
			t.Fatalf("refused after %d µs: used %v", wait, later)
		}
		ideal := (used + float64(cost) - float64(burst)) / rate
		if late := float64(wait) - ideal; late > 2+float64(period)*0x1p-47 || math.IsNaN(late) {
			t.Fatalf("%v µs too late", late)
		}
	})
}

func TestGuard(t *testing.T) {
	for life, want := range map[time.Duration]time.Duration{
		0:                       50 * time.Millisecond,
		2500 * time.Millisecond: 50 * time.Millisecond,
		60 * time.Second:        1200 * time.Millisecond,
		120 * time.Second:       2400 * time.Millisecond,
	} {
		if got := Guard(life); got != want {
			t.Errorf("Guard(%v) = %v, want %v", life, got, want)
		}
	}
}
