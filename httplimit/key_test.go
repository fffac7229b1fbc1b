package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/hybridlimit/hybrid"
)

type userKey struct{}

func TestKeys(t *testing.T) {
	inContext := func(v any) func(*http.Request) {
		return func(r *http.Request) { *r = *r.WithContext(context.WithValue(r.Context(), userKey{}, v)) }
	}
	failing := KeyFunc(func(*http.Request) (string, error) { return "secret", errors.New("no session") })
	for _, c := range []struct {
		why    string
		key    Key
		change func(*http.Request)
		want   string // empty: there is none
	}{
		{"a header", Header("x-api-key"), with("X-API-Key", "k1"), "k1"},
		{"no header", Header("X-API-Key"), with("X-Other", "k1"), ""},
		{"an empty header", Header("X-API-Key"), with("X-API-Key", ""), ""},
		{"two headers", Header("X-API-Key"), func(r *http.Request) { r.Header["X-Api-Key"] = []string{"k1", "k2"} }, ""},
		{"any bytes", Header("X-API-Key"), with("X-API-Key", "\xff a:b"), "\xff a:b"},
		{"a string of the context", Value(userKey{}), inContext("ann"), "ann"},
		{"a Stringer", Value(userKey{}), inContext(netip.MustParseAddr("::1")), "::1"},
		{"an empty string", Value(userKey{}), inContext(""), ""},
		{"something else", Value(userKey{}), inContext(42), ""},
		{"nothing", Value(userKey{}), with("X", "y"), ""},
		{"no pattern", Pattern(), with("X", "y"), ""},
		{"a fixed key", Fixed("all"), with("X", "y"), "all"},
		{"a function that fails", failing, with("X", "y"), ""},
		{"one part", Join(Fixed("a:b")), with("X", "y"), "a:b"},
		{"three parts", Join(Fixed("a"), Header("X"), Fixed("c:d")), with("X", "1:b"), "1:a3:1:bc:d"},
		{"a part that is missing", Join(Fixed("a"), Header("X")), with("Y", "y"), ""},
		{"a part that fails", Join(failing, Fixed("a")), with("Y", "y"), ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		c.change(r)
		got, err := keyBy(c.key.find, native{r})
		if got != c.want || errors.Is(err, ErrNoKey) != (c.want == "") {
			t.Errorf("%s: %q, %v; want %q", c.why, got, err, c.want)
		}
	}
}

// What is too long is no key, wherever it comes from and whatever it is a part of.
func TestLongKeysAreNone(t *testing.T) {
	long, longest := strings.Repeat("k", longestKey+1), strings.Repeat("k", longestKey)
	r := &message{route: long, left: map[any]any{"text": long, "user": &strings.Builder{}},
		headers: map[string][]string{"Long": {long}, "Longest": {longest}}}
	r.left["user"].(*strings.Builder).WriteString(long)
	for name, key := range map[string]Key{
		"a header": Header("Long"), "a string": Value("text"), "a Stringer": Value("user"), "a pattern": Pattern(),
		"a join": Join(Fixed("a"), Header("Longest")), "a part": Join(Header("Long"), Fixed("a")),
		"a function": RequestKey(func(Request) (string, error) { return long, nil }),
		"a copy":     {find: copied(Header("Long").find)},
	} {
		if got, err := keyBy(key.find, r); got != "" || !errors.Is(err, ErrNoKey) || len(err.Error()) > 200 {
			t.Errorf("%s: a key of %d bytes, %v", name, len(got), err)
		}
	}
	if got, err := keyBy(Header("Longest").find, r); got != longest || err != nil {
		t.Errorf("the longest key: %d bytes, %v", len(got), err)
	}
}

// Who sends long keys fills no memory, not even that of a limiter which keeps keys
// as they are, for its LimitFor.
func TestLongKeysAreNotRemembered(t *testing.T) {
	inBubble(t, func(w *world) {
		customers := w.limiter("customers", hybrid.PerHour(1), &hybrid.LimiterOptions{
			LimitFor: func(string) (hybrid.Limit, bool) { return hybrid.PerHour(2), true },
		})
		h := w.serve(customers, &Options{Key: Header("X-API-Key"), NoKey: http.StatusUnauthorized})
		for i := range 100 {
			wantStatus(t, call(h, with("X-API-Key", fmt.Sprintf("%060000d", i))), http.StatusUnauthorized, "X-RateLimit-Limit", "")
		}
		if n := w.node.Stats().Total.Keys; n != 0 {
			t.Errorf("%d keys are remembered", n)
		}
		wantStatus(t, call(h, with("X-API-Key", fmt.Sprintf("%02048d", 1))), http.StatusOK, "X-RateLimit-Limit", "2")
	})
}

func TestPatternIsTheRoute(t *testing.T) {
	inBubble(t, func(w *world) {
		mw, err := New(w.strict("api", hybrid.PerHour(2)), &Options{Key: Pattern()})
		if err != nil {
			t.Fatal(err)
		}
		served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		mux := http.NewServeMux()
		mux.Handle("GET /items/{id}", mw(served))
		mux.Handle("GET /other/{id}", mw(served))
		at := func(path string) func(*http.Request) { return func(r *http.Request) { r.URL.Path = path } }
		wantStatus(t, call(mux, at("/items/1")), http.StatusNoContent)
		wantStatus(t, call(mux, at("/items/2")), http.StatusNoContent)
		wantStatus(t, call(mux, at("/items/3")), http.StatusTooManyRequests)
		wantStatus(t, call(mux, at("/other/3")), http.StatusNoContent)
		wantStatus(t, call(mw(mux), at("/items/1")), http.StatusBadRequest) // no pattern out there
	})
}

// FuzzJoin joins any parts in two ways: the keys are the same only if the parts are.
func FuzzJoin(f *testing.F) {
	f.Add("a", "b:c", "a:b", "c")
	f.Add("", "1:a", "1:", "a")
	f.Add("1", "1:1", "1:1", "1")
	f.Add("a", "b", "a", "b")
	f.Add(strings.Repeat("x", 200), "y", strings.Repeat("x", 199), "xy")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		of := func(parts ...string) (string, error) {
			var keys []Key
			for _, p := range parts {
				keys = append(keys, KeyFunc(func(*http.Request) (string, error) { return p, nil }))
			}
			return keyBy(Join(keys...).find, native{})
		}
		first, err1 := of(a, b)
		second, err2 := of(c, d)
		if (err1 == nil) != (a != "" && b != "") || (err2 == nil) != (c != "" && d != "") {
			t.Fatalf("%q %q: %v; %q %q: %v", a, b, err1, c, d, err2)
		}
		if err1 == nil && err2 == nil && (first == second) != (a == c && b == d) {
			t.Fatalf("%q and %q give %q, %q and %q give %q", a, b, first, c, d, second)
		}
	})
}
