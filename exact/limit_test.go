package exact

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/slice"
)

func TestLimitValidate(t *testing.T) {
	for _, l := range []Limit{
		PerSecond(1), PerMinute(0), PerHour(slice.MaxTokens), PerDay(3), Per(5, time.Microsecond), Per(5, maxPeriod),
		Per(0, time.Second).WithBurst(5), PerSecond(10).WithBurst(slice.MaxTokens), PerSecond(slice.MaxTokens).WithBurst(1),
		Window(0, time.Second), Window(10, time.Hour), Window(10, time.Hour).WithBurst(10), Per(1, 1500*time.Microsecond), Per(1, time.Second/3), Window(1, time.Second/3),
	} {
		if err := l.Validate(); err != nil {
			t.Errorf("%v: %v", l, err)
		}
	}
	for _, l := range []Limit{
		{}, PerSecond(-1), PerSecond(slice.MaxTokens + 1), Per(1, 0), Per(1, -time.Second), Per(1, time.Nanosecond),
		Per(1, maxPeriod+time.Microsecond), Per(1, math.MaxInt64), PerSecond(10).WithBurst(0),
		PerSecond(10).WithBurst(-1), PerSecond(10).WithBurst(slice.MaxTokens + 1), PerSecond(0).WithBurst(-1),
		Window(10, time.Hour).WithBurst(11), Window(10, 0), Window(-1, time.Hour), {count: 1, burst: 1},
	} {
		if err := l.Validate(); !errors.Is(err, ErrInvalidLimit) {
			t.Errorf("%v: %v", l, err)
		}
	}
}

func TestLimitAccessors(t *testing.T) {
	l := PerMinute(100).WithBurst(20)
	if l.Count() != 100 || l.Burst() != 20 || l.Period() != time.Minute || l.Windowed() || l != Per(100, time.Minute).WithBurst(20) {
		t.Error(l)
	}
	for l, want := range map[Limit]string{
		l:                            "100 per 1m0s, burst 20",
		PerSecond(5):                 "5 per 1s",
		Window(100, time.Minute):     "100 per window of 1m0s",
		PerSecond(5).WithBurst(5):    "5 per 1s",
		Per(1, 1500*time.Nanosecond): "1 per 2µs",
		Per(1, time.Second/3):        "1 per 333.333ms",
	} {
		if l.String() != want {
			t.Errorf("%q, want %q", l, want)
		}
	}
}

func TestLimitRule(t *testing.T) {
	for l, want := range map[Limit]slice.Rule{
		PerSecond(1000).WithBurst(5): {Burst: 5, Rate: 0.001},
		Window(60, time.Minute):      {Burst: 60, Rate: 60 / 6e7, Window: 60_000_000},
		PerSecond(0).WithBurst(9):    {},
		Window(0, time.Second):       {Window: 1_000_000},
	} {
		if got := l.Rule(); got != want {
			t.Errorf("%v: %+v", l, got)
		}
	}
}
