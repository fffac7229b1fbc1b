package httplimit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/fields"
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

// A LimitFor that makes up a limit for each key does not fill the memory, and what
// is not kept waits for nobody.
func TestPoliciesAreBounded(t *testing.T) {
	p := &policies{}
	for i := range int64(10 * mostPolicies) {
		if i == mostPolicies {
			p.mu.Lock() // for good: who takes it now never returns
		}
		l := hybrid.PerHour(i + 1)
		got, ok := p.text(`"x"`, l)
		switch want := string(fields.AppendPolicy(nil, `"x"`, l)); {
		case i < mostPolicies && (got != want || !ok):
			t.Fatalf("policy %d: %q, %v, want %q", i, got, ok, want)
		case i >= mostPolicies && ok:
			t.Fatalf("policy %d is kept too: %q", i, got)
		}
	}
	if n := len(*p.known.Load()); n != mostPolicies {
		t.Errorf("%d policies are kept, want %d", n, mostPolicies)
	}
	if got, ok := p.text(`"x"`, hybrid.PerHour(1)); got != `"x";q=1;w=3600` || !ok {
		t.Errorf("the first one has become %q, %v", got, ok)
	}
}
