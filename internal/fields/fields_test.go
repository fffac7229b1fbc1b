package fields

import (
	"math"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

func TestPolicyTexts(t *testing.T) {
	for l, want := range map[hybrid.Limit]string{
		hybrid.PerSecond(10):                        `"x";q=10;w=1`,
		hybrid.PerSecond(10).WithBurst(50):          `"x";q=10;w=1`,
		hybrid.PerDay(1000):                         `"x";q=1000;w=86400`,
		hybrid.Window(100, time.Minute):             `"x";q=100;w=60`,
		hybrid.Per(3, 7*time.Millisecond):           `"x";q=428;w=1`,
		hybrid.Per(10, 1500*time.Millisecond):       `"x";q=13;w=2`,
		hybrid.Per(1, 1500*time.Millisecond):        `"x";q=1;w=2`,
		hybrid.PerSecond(0):                         `"x";q=0;w=1`,
		hybrid.PerHour(1 << 53):                     `"x";q=999999999999999;w=3600`,
		hybrid.Per(1<<53, time.Microsecond):         `"x";q=999999999999999;w=1`,
		hybrid.Per(1, (1<<53)*time.Microsecond):     `"x";q=1;w=9007199255`,
		hybrid.Per(1<<53, (1<<53)*time.Microsecond): `"x";q=999999999999999;w=9007199255`,
	} {
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := string(AppendPolicy(nil, `"x"`, l)); got != want {
			t.Errorf("%v: %s, want %s", l, got, want)
		}
	}
}

func TestEffectiveWindows(t *testing.T) {
	minute, window := hybrid.PerMinute(100), hybrid.Window(100, time.Minute)
	for _, c := range []struct {
		why   string
		limit hybrid.Limit
		r     hybrid.Result
		want  int64 // 0: none
	}{
		{"a full bucket", minute, hybrid.Result{Allowed: true, Remaining: 100}, 60},
		{"half of it", minute, hybrid.Result{Allowed: true, Remaining: 50, ResetAfter: 30 * time.Second}, 30},
		{"nearly nothing", minute, hybrid.Result{Allowed: true, Remaining: 1}, 1},
		{"nothing: the next token", hybrid.PerHour(6), hybrid.Result{Allowed: true}, 600},
		{"of a fast limit", hybrid.PerSecond(1000), hybrid.Result{Allowed: true, Remaining: 10}, 1},
		{"a burst above the rate", hybrid.PerSecond(10).WithBurst(600), hybrid.Result{Allowed: true, Remaining: 600}, 60},
		{"a window", window, hybrid.Result{Allowed: true, Remaining: 50, ResetAfter: 7100 * time.Millisecond}, 8},
		{"of which nothing was told", window, hybrid.Result{Allowed: true, Remaining: 100}, 60},
		{"or long ago", window, hybrid.Result{Allowed: true, Remaining: 50, ResetAfter: time.Hour}, 60},
		{"denied", minute, hybrid.Result{Remaining: 3, RetryAfter: 1001 * time.Millisecond, ResetAfter: time.Minute}, 2},
		{"for ever", minute, hybrid.Result{RetryAfter: hybrid.Never}, 0},
		{"shadowed at a limit of 0", hybrid.PerSecond(0), hybrid.Result{Allowed: true, Shadowed: true}, 0},
		{"the longest of all", hybrid.Per(1, (1<<53)*time.Microsecond).WithBurst(1 << 53), hybrid.Result{Allowed: true, Remaining: 1 << 53}, maxInteger},
	} {
		got, ok := effectiveWindow(c.limit, &c.r)
		if got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: %d, %v; want %d", c.why, got, ok, c.want)
		}
	}
}

func TestWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Second - 1: 1, time.Second: 1, time.Second + 1: 2,
		59 * time.Second: 59, math.MaxInt64 - 1: 9223372037} {
		if got := WholeSeconds(d); got != want {
			t.Errorf("%v: %d, want %d", d, got, want)
		}
	}
	at := time.Unix(1000, 1)
	for d, want := range map[time.Duration]int64{0: 1001, time.Second - 2: 1001, time.Second - 1: 1001, time.Second: 1002} {
		if got := unixAfter(at, d); got != want {
			t.Errorf("%v after 1000 s and 1 ns: %d, want %d", d, got, want)
		}
	}
	// RetryAfter is shown as no less than a second, and ends no later than the reset.
	for _, retry := range []time.Duration{1, time.Millisecond, time.Second, 90 * time.Second} {
		r := hybrid.Result{RetryAfter: retry}
		seconds, ok := RetryAfter(&r)
		if !ok || seconds < 1 || time.Duration(seconds)*time.Second < retry || WholeSeconds(UntilReset(&r)) < seconds {
			t.Errorf("retry after %v: %d, %v, reset %v", retry, seconds, ok, UntilReset(&r))
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{"api": `"api"`, `a"b\c`: `"a\"b\\c"`, "with space": `"with space"`, "~": `"~"`} {
		if got, ok := Quote(s); got != want || !ok {
			t.Errorf("%q: %s, %v; want %s", s, got, ok, want)
		}
	}
	for _, s := range []string{"ü", "a\nb", "\x00", "\x7f", "\xff"} {
		if got, ok := Quote(s); ok {
			t.Errorf("%q: %s", s, got)
		}
	}
}
