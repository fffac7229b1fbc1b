package hybridgrpc

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// The fields are those of httplimit, letter for letter, from the first call to the
// denial: a proxy between the two may copy them.
func TestFieldsAreThoseOfHTTP(t *testing.T) {
	inBubble(t, func(w *world) {
		limits := map[string]hybrid.Limit{
			"api":            hybrid.PerMinute(3),
			`a "name" \ ~`:   hybrid.Window(3, time.Hour),
			"fast":           hybrid.Per(3, 1500*time.Millisecond),
			"slow":           hybrid.Per(3, 1500*time.Second).WithBurst(2),
			"of many":        hybrid.Per(1<<53, time.Hour).WithBurst(3),
			"of nothing":     hybrid.PerSecond(0),
			"shadow nothing": hybrid.PerSecond(0),
		}
		for name, limit := range limits {
			for style := httplimit.XRateLimit; style <= httplimit.NoHeaders; style++ {
				l := w.limiter(name+style.String(), limit, &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: name == "shadow nothing"})
				for range 5 {
					compareFields(t, l, style)
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
	})
}

// compareFields asks by HTTP, under one key, and by gRPC, under another that was used as
// much, at the same moment of virtual time.
func compareFields(t *testing.T, l *hybrid.Limiter, style httplimit.Headers) {
	t.Helper()
	mw, err := httplimit.New(l, &httplimit.Options{Headers: style, Key: httplimit.Fixed("http")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(l, &ServerOptions{Headers: style, Key: Fixed("grpc")})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	mw(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	v, err := s.decide(ctx, Call{}, s.noKeys(nil))
	if err != nil {
		t.Fatal(err)
	}
	got, want := s.fields(ctx, &v), metadata.MD{}
	for name, values := range rec.Result().Header {
		if lower := strings.ToLower(name); strings.Contains(lower, "ratelimit") || lower == "retry-after" {
			want[lower] = values
		}
	}
	if pushback := got[fieldPushback]; (len(pushback) == 1) == v.result.Allowed {
		t.Errorf("%s in %v: pushback %q of %+v", l.Name(), style, pushback, v.result)
	}
	delete(got, fieldPushback)
	if len(got) != len(want) {
		t.Errorf("%s in %v: %v, want %v", l.Name(), style, got, want)
	}
	for name, values := range want {
		if len(got[name]) != 1 || got[name][0] != values[0] && !near(got[name][0], values[0]) {
			t.Errorf("%s in %v: %s is %q, want %q", l.Name(), style, name, got[name], values)
		}
	}
}

// near reports whether two values are numbers that differ by one: the two calls are a
// round trip to Redis apart.
func near(a, b string) bool {
	m, err := strconv.ParseInt(a, 10, 64)
	n, err2 := strconv.ParseInt(b, 10, 64)
	return err == nil && err2 == nil && max(m, n)-min(m, n) <= 1
}

// FuzzClientIP compares the addresses that are found with those of httplimit.
func FuzzClientIP(f *testing.F) {
	for _, seed := range [][3]string{
		{"10.0.0.1:80", "192.0.2.1", ""},
		{"10.0.0.1:80", "1.1.1.1, 10.2.2.2", "[2001:db8::1]:80, 10.3.3.3"},
		{"[fd00::1%eth0]:80", "fe80::1%25eth0, ::ffff:10.1.1.1", "unknown"},
		{"@", "192.0.2.1, ,", "10.1.1.1"},
		{"", ",", ", \t"},
		{"10.0.0.1:80", strings.Repeat("10.0.0.1,", 40), "1.1.1.1" + strings.Repeat(" ", 99)},
		{"192.0.2.1:1", "10.0.0.1:99999", "[10.0.0.1]:1"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	trusted := []string{"10.0.0.0/8", "fd00::/8", "unix"}
	ours, theirs := ClientIP(trusted, nil), httpKey(f, httplimit.ClientIP(trusted, nil))
	f.Fuzz(func(t *testing.T, remote, first, second string) {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": {first, second}}}
		want := theirs(r.WithContext(ctx))
		got, _ := ours.of(from(text(remote), "x-forwarded-for", first, "x-forwarded-for", second), Call{})
		if got != want {
			t.Errorf("%q by %q, %q: %q, over HTTP %q", remote, first, second, got, want)
		}
	})
}

// httpKey is what httplimit counts a request under: a shadow limit of nothing passes
// each request and tells its key.
func httpKey(tb testing.TB, key httplimit.Key) func(*http.Request) string {
	tb.Helper()
	node := nobody(tb)
	var found string
	mw, err := httplimit.New(newLimiter(tb, node, "shadow", hybrid.PerSecond(0), &hybrid.LimiterOptions{Shadow: true}), &httplimit.Options{
		Key:     key,
		Decided: func(_ *http.Request, d httplimit.Decision) { found = d.Key },
	})
	if err != nil {
		tb.Fatal(err)
	}
	h := mw(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return func(r *http.Request) string {
		found = ""
		h.ServeHTTP(httptest.NewRecorder(), r)
		return found
	}
}

// A key that is too long for HTTP is too long for gRPC.
func TestLongestKeyIsThatOfHTTP(t *testing.T) {
	ours, theirs := Metadata("x-api-key"), httpKey(t, httplimit.Header("X-API-Key"))
	for n, is := range map[int]bool{longestKey - 1: true, longestKey: true, longestKey + 1: false, 60_000: false} {
		key := strings.Repeat("k", n)
		r := &http.Request{Header: http.Header{"X-Api-Key": {key}}}
		got, err := ours.of(from(nil, "x-api-key", key), Call{})
		if over := theirs(r.WithContext(ctx)); got != over || (got == key) != is || is != (err == nil) {
			t.Errorf("%d bytes: a key of %d, %v, over HTTP of %d; want one: %v", n, len(got), err, len(over), is)
		}
	}
}

// FuzzCalls is metadata that anybody may write: each call is decided, none is counted
// under nothing, and a key of any bytes makes a status that can be sent.
func FuzzCalls(f *testing.F) {
	f.Add("k", "1.1.1.1", []byte{0, 255})
	f.Add(strings.Repeat("k", 1<<16+1), strings.Repeat("1,", 1000), []byte(nil))
	f.Add(strings.Repeat("k", longestKey), "1.1.1.1", []byte("t"))
	f.Add("\xff\x00", "::", []byte("\n"))
	l := newLimiter(f, nobody(f), "none", hybrid.PerSecond(0), nil)
	opts := &ServerOptions{
		Key:     Join(Metadata("x-api-key"), ClientIP([]string{"10.0.0.0/8"}, nil), Metadata("token-bin")),
		Subject: func(d Decision) string { return d.Key },
		Headers: httplimit.IETF,
	}
	s, err := newServer(l, opts)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, apiKey, forwarded string, token []byte) {
		c := from(tcp("10.0.0.1"), "x-api-key", apiKey, "x-forwarded-for", forwarded, "token-bin", string(token))
		var told Decision
		s.options.Deny = func(_ context.Context, d Decision) error { told = d; return nil }
		_, err := s.unary(c, nil, &grpc.UnaryServerInfo{FullMethod: say}, func(context.Context, any) (any, error) {
			t.Error("a limit of nothing admits")
			return nil, nil
		})
		d := detailsOf(t, err)
		whole := len(apiKey) > 0 && len(token) > 0
		switch {
		case d.quota != nil && (!whole || !strings.Contains(told.Key, apiKey)):
			t.Errorf("%q and %q are counted as %q", apiKey, token, told.Key)
		case d.quota == nil && whole && len(apiKey)+len(token) < longestKey-100:
			t.Errorf("%v for %q and %q", err, apiKey, token)
		}
	})
}
