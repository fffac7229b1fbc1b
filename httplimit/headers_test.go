package httplimit

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

func TestStyles(t *testing.T) {
	inBubble(t, func(w *world) {
		own := Names{Limit: "acme-limit", Remaining: "ACME-REMAINING", Reset: "Acme-Reset", RateLimit: "x-rl", Policy: "x-rl-policy", RetryAfter: "x-retry"}
		all := []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy", "Retry-After",
			"Acme-Limit", "Acme-Remaining", "Acme-Reset", "X-RL", "X-RL-Policy", "X-Retry"}
		for i, c := range []struct {
			style           Headers
			names           Names
			allowed, denied []string // all others are absent
		}{
			{XRateLimit, Names{},
				[]string{"X-RateLimit-Limit", "1", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"},
				[]string{"X-RateLimit-Limit", "1", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60", "Retry-After", "60"}},
			{XRateLimitEpoch, Names{}, // some milliseconds after midnight
				[]string{"X-RateLimit-Limit", "1", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "946684861"},
				[]string{"X-RateLimit-Limit", "1", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "946684861", "Retry-After", "60"}},
			{IETF, Names{},
				[]string{"RateLimit", `"api";r=0;t=60`, "RateLimit-Policy", `"api";q=1;w=60`},
				[]string{"RateLimit", `"api";r=0;t=60`, "RateLimit-Policy", `"api";q=1;w=60`, "Retry-After", "60"}},
			{NoHeaders, Names{}, nil, []string{"Retry-After", "60"}},
			{XRateLimit, own,
				[]string{"Acme-Limit", "1", "Acme-Remaining", "0", "Acme-Reset", "60"},
				[]string{"Acme-Limit", "1", "Acme-Remaining", "0", "Acme-Reset", "60", "X-Retry", "60"}},
			{IETF, own,
				[]string{"X-RL", `"api";r=0;t=60`, "X-RL-Policy", `"api";q=1;w=60`},
				[]string{"X-RL", `"api";r=0;t=60`, "X-RL-Policy", `"api";q=1;w=60`, "X-Retry", "60"}},
		} {
			h := w.serve(w.strict(fmt.Sprint(i), hybrid.PerMinute(1)), &Options{Headers: c.style, Names: c.names, Name: "api"})
			wantStatus(t, call(h), http.StatusOK, only(all, c.allowed)...)
			wantStatus(t, call(h), http.StatusTooManyRequests, only(all, c.denied)...)
		}
	})
}

// only adds to the headers that are wanted that all others are absent.
func only(all, want []string) []string {
	want = append([]string(nil), want...)
	there := map[string]bool{}
	for i := 0; i < len(want); i += 2 {
		there[want[i]] = true
	}
	for _, name := range all {
		if !there[name] {
			want = append(want, name, "")
		}
	}
	return want
}

// Headers of one response are parts of one allocation: what a handler does to one
// must not show in another, nor in the next response.
func TestHandlersMayChangeHeaders(t *testing.T) {
	inBubble(t, func(w *world) {
		for style, count := range map[Headers]int{XRateLimit: 3, IETF: 2} {
			mw, err := New(w.strict(style.String(), hybrid.PerHour(10)), &Options{Headers: style})
			if err != nil {
				t.Fatal(err)
			}
			h := mw(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, values := range w.Header() {
					if len(values) != 1 || values[0] == "changed" || values[0] == "added" {
						t.Errorf("%v: %s comes as %q", style, name, values)
					}
					values[0] = "changed"
					w.Header().Add(name, "added")
				}
			}))
			for range 2 {
				resp := call(h)
				if len(resp.Header) != count {
					t.Errorf("%v: want %d headers: %v", style, count, resp.Header)
				}
				for name, values := range resp.Header {
					if !slices.Equal(values, []string{"changed", "added"}) {
						t.Errorf("%v: %s is %q", style, name, values)
					}
				}
			}
		}
	})
}

func TestTiersShowTheirPolicy(t *testing.T) {
	inBubble(t, func(w *world) {
		api := w.limiter("api", hybrid.PerMinute(10), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, LimitFor: func(key string) (hybrid.Limit, bool) {
			return hybrid.PerSecond(100).WithBurst(1000), strings.HasPrefix(key, "pro")
		}})
		h := w.serve(api, &Options{Headers: IETF, Key: Header("X-Key")})
		for range 2 { // written, and remembered
			wantStatus(t, call(h, with("X-Key", "free-1")), http.StatusOK, "RateLimit-Policy", `"api";q=10;w=60`)
			wantStatus(t, call(h, with("X-Key", "pro-1")), http.StatusOK, "RateLimit-Policy", `"api";q=100;w=1`)
		}
		if err := api.SetLimit(hybrid.PerMinute(20)); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, call(h, with("X-Key", "free-1")), http.StatusOK, "RateLimit-Policy", `"api";q=20;w=60`)
	})
}

// A LimitFor that makes up a limit for each key does not fill the memory.
func TestPoliciesAreBounded(t *testing.T) {
	p := &policies{}
	for i := range int64(10 * mostPolicies) {
		l := hybrid.PerHour(i + 1)
		if got, want := p.text(`"x"`, l), policy(`"x"`, l); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	if n := len(*p.known.Load()); n != mostPolicies {
		t.Errorf("%d policies are kept, want %d", n, mostPolicies)
	}
}

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
		if got := policy(`"x"`, l); got != want {
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
		if got := wholeSeconds(d); got != want {
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
		seconds, ok := retryAfter(&r)
		if !ok || seconds < 1 || time.Duration(seconds)*time.Second < retry || wholeSeconds(untilReset(&r)) < seconds {
			t.Errorf("retry after %v: %d, %v, reset %v", retry, seconds, ok, untilReset(&r))
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{"api": `"api"`, `a"b\c`: `"a\"b\\c"`, "with space": `"with space"`, "~": `"~"`} {
		if got, ok := quote(s); got != want || !ok {
			t.Errorf("%q: %s, %v; want %s", s, got, ok, want)
		}
	}
	for _, s := range []string{"ü", "a\nb", "\x00", "\x7f", "\xff"} {
		if got, ok := quote(s); ok {
			t.Errorf("%q: %s", s, got)
		}
	}
}
