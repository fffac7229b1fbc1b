package slice

import (
	"testing"
	"time"
)

// FuzzTiming asks for the times that follow from any grant: they are positive,
// whole microseconds, and Never only for what can never fit.
func FuzzTiming(f *testing.F) {
	f.Add(int64(10), 1e-5, int64(0), int64(3), 9.5, int64(1.8e15), int64(1.8e15))
	f.Add(int64(1), 1e-300, int64(0), int64(1), 1.0, int64(1), int64(0))
	f.Add(int64(MaxTokens), 1e-16, int64(0), int64(MaxTokens), 1e17, int64(MaxTokens), int64(0))
	f.Add(int64(5), 5.0/6e7, int64(6e7), int64(5), 1.0, int64(1.8e15+59e6), int64(1.8e15))
	f.Add(int64(5), 1.0, int64(1), int64(6), 5.0, int64(7), int64(9))
	f.Fuzz(func(t *testing.T, burst int64, rate float64, window, cost int64, used float64, now, clock int64) {
		if burst < 1 || burst > MaxTokens || !(rate > 0 && rate <= MaxTokens) || window < 0 || window > MaxTokens || cost < 1 ||
			!(used >= 0 && used <= 1e18) || clock < 0 || now < clock || now > MaxTokens {
			t.Skip()
		}
		rule, g := Rule{Burst: burst, Rate: rate, Window: window}, Grant{Used: used, Now: now, Clock: clock}
		retry, reset := RetryAfter(rule, g, cost), ResetAfter(rule, g)
		switch {
		case (retry == Never) != (cost > burst):
			t.Fatalf("retry %v for %d of %d", retry, cost, burst)
		case retry <= 0 || retry != Never && retry%time.Microsecond != 0:
			t.Fatalf("retry %v", retry)
		case reset < 0 || reset == Never || reset%time.Microsecond != 0 || (reset == 0) != (used == 0):
			t.Fatalf("reset %v with %v used", reset, used)
		}
		if window > 0 && now == clock && retry != Never && retry > time.Duration(window)*time.Microsecond {
			t.Fatalf("retry %v in a window of %d µs", retry, window)
		}
		if guard := Guard(retry / 2); guard <= 0 {
			t.Fatalf("guard %v", guard)
		}
	})
}
