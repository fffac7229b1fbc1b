package httplimit

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unsafe"

	"github.com/hybridlimit/hybrid"
)

// message is a request of a server that does not speak net/http.
type message struct {
	ctx     context.Context
	remote  string
	headers map[string][]string
	route   string
	left    map[any]any
}

func (m *message) Context() context.Context    { return m.ctx }
func (m *message) RemoteAddr() string          { return m.remote }
func (m *message) Header(name string) []string { return m.headers[name] }
func (m *message) Pattern() string             { return m.route }
func (m *message) Value(key any) any           { return m.left[key] }

func (w *world) decider(opts *DeciderOptions, limits ...Limit) *Decider {
	w.t.Helper()
	d, err := NewDecider(limits, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// decide fails the test unless a request has a decision with a status.
func (w *world) decide(d *Decider, r Request, status int) Decision {
	w.t.Helper()
	decision, err := d.Decide(r)
	if err != nil || decision.Status != status {
		w.t.Errorf("%+v, %v; want the status %d", decision, err, status)
	}
	return decision
}

// wantAnswer fails the test unless an answer has a status, a body, and fields given
// as name and value in turn, in any order.
func wantAnswer(t *testing.T, a Answer, status int, body string, fields ...string) {
	t.Helper()
	if a.Status != status || string(a.Body) != body {
		t.Errorf("%d with %q, want %d with %q", a.Status, a.Body, status, body)
	}
	wantFields(t, a.Fields, fields...)
}

func wantFields(t *testing.T, got []Field, want ...string) {
	t.Helper()
	if len(got) != len(want)/2 {
		t.Errorf("fields %q, want %q", got, want)
	}
	for _, f := range got {
		found := false
		for i := 0; i < len(want); i += 2 {
			found = found || f.Name == http.CanonicalHeaderKey(want[i]) && f.Value == want[i+1]
		}
		if !found {
			t.Errorf("%s is %q, want one of %q", f.Name, f.Value, want)
		}
	}
}

// All kinds of keys find what they look for, whatever server the request came to.
func TestKeysOfAnotherServer(t *testing.T) {
	r := &message{remote: "10.0.0.1:80", route: "GET /items/:id", left: map[any]any{"user": "ann"},
		headers: map[string][]string{"X-Api-Key": {"k1"}, "X-Forwarded-For": {"1.1.1.1, 203.0.113.9"}}}
	length := RequestKey(func(r Request) (string, error) { return strings.Repeat("x", len(r.Pattern())), nil })
	for want, key := range map[string]Key{
		"10.0.0.1":                 RemoteIP(nil),
		"203.0.113.9":              ClientIP([]string{"10.0.0.0/8"}, nil),
		"k1":                       Header("X-API-Key"),
		"GET /items/:id":           Pattern(),
		"ann":                      Value("user"),
		"all":                      Fixed("all"),
		"3:ann14:GET /items/:idk1": Join(Value("user"), Pattern(), Header("X-API-Key")),
		"xxxxxxxxxxxxxx":           length,
	} {
		if got, err := keyBy(key.find, r); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// What another server is told to answer is what New answers.
func TestDecider(t *testing.T) {
	inBubble(t, func(w *world) {
		cost := int64(1)
		d := w.decider(nil, Limit{Limiter: w.strict("api", hybrid.PerMinute(2)), Key: Value("user"), Cost: func(Request) int64 { return cost }})
		ann := &message{ctx: ctx, left: map[any]any{"user": "ann"}}
		for _, left := range []string{"1", "0"} {
			passes := w.decide(d, ann, http.StatusOK)
			reset := map[string]string{"1": "30", "0": "60"}[left]
			wantFields(t, d.Fields(&passes), "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", left, "X-RateLimit-Reset", reset)
		}
		denied := w.decide(d, ann, http.StatusTooManyRequests)
		wantFields(t, d.Fields(&denied), "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60", "Retry-After", "30")
		wantAnswer(t, d.Denial(denied), http.StatusTooManyRequests, "Too Many Requests\n",
			"Cache-Control", "no-store", "Content-Type", "text/plain; charset=utf-8", "X-Content-Type-Options", "nosniff")
		cost = 0
		free := w.decide(d, ann, http.StatusOK)
		if free.Limiter != nil || !free.Result.Allowed {
			t.Errorf("%+v; want a request that is free, and passes", free)
		}
		wantFields(t, d.Fields(&free))
		cost = -1
		_, err := d.Decide(ann)
		wantAnswer(t, d.Failure(err), http.StatusInternalServerError, "Internal Server Error\n",
			"Cache-Control", "no-store", "Content-Type", "text/plain; charset=utf-8", "X-Content-Type-Options", "nosniff")
		wantAnswer(t, d.Failure(context.Canceled), statusClientLeft, "")
	})
}

func TestDeciderOptions(t *testing.T) {
	inBubble(t, func(w *world) {
		opts := &DeciderOptions{Headers: IETF, Names: Names{RetryAfter: "x-retry"}, Problem: true, NoKey: http.StatusUnauthorized}
		user, tenant := w.strict("user", hybrid.PerMinute(1)), w.strict("tenant", hybrid.PerMinute(2))
		d := w.decider(opts, Limit{Limiter: user, Key: Value("user"), Name: "mine"}, Limit{Limiter: tenant, Key: Fixed("acme")})
		ann := &message{ctx: ctx, left: map[any]any{"user": "ann"}}
		w.decide(d, ann, http.StatusOK)
		denied := w.decide(d, ann, http.StatusTooManyRequests)
		wantFields(t, d.Fields(&denied), "RateLimit", `"mine";r=0;t=60`, "RateLimit-Policy", `"mine";q=1;w=60`, "X-Retry", "60")
		if a := d.Denial(denied); !strings.Contains(string(a.Body), `"violated-policies":["mine"]`) {
			t.Errorf("%s", a.Body)
		}
		_, err := d.Decide(&message{ctx: ctx})
		if a := d.Failure(err); !errors.Is(err, ErrNoKey) || a.Status != http.StatusUnauthorized {
			t.Errorf("%v, answered %d", err, a.Status)
		}
		_ = user.Close()
		_, err = d.Decide(ann)
		a := d.Failure(err)
		if a.Status != http.StatusServiceUnavailable {
			t.Errorf("%v, answered %d", err, a.Status)
		}
		wantFields(t, a.Fields, "X-Retry", "1", "Cache-Control", "no-store", "Content-Type", "application/problem+json", "X-Content-Type-Options", "nosniff")
	})
}

// The key of a request whose memory is used again for another stays what it was.
func TestDeciderCopiesKeys(t *testing.T) {
	inBubble(t, func(w *world) {
		memory := []byte("ann")
		d := w.decider(&DeciderOptions{CopyKeys: true}, Limit{Limiter: w.strict("api", hybrid.PerHour(1)), Key: Value("user")})
		request := &message{ctx: ctx, left: map[any]any{"user": unsafe.String(&memory[0], len(memory))}}
		for _, user := range []string{"ann", "bob"} {
			copy(memory, user)
			if got := w.decide(d, request, http.StatusOK); got.Key != user {
				t.Errorf("counted under %q, want %q", got.Key, user)
			}
		}
		copy(memory, "ann")
		again := w.decide(d, request, http.StatusTooManyRequests)
		copy(memory, "eve")
		if again.Key != "ann" {
			t.Errorf("the key has become %q", again.Key)
		}
	})
}

func TestDeciderMistakes(t *testing.T) {
	inBubble(t, func(w *world) {
		api := Limit{Limiter: w.strict("api", hybrid.PerHour(1))}
		stranger := newWorld(w.t, w.mini).strict("stranger", hybrid.PerHour(1))
		adapter := &DeciderOptions{Owner: "hybridother.Options"}
		native := KeyFunc(func(*http.Request) (string, error) { return "k", nil })
		for _, c := range []struct {
			limits []Limit
			opts   *DeciderOptions
			says   []string
		}{
			{nil, nil, []string{"httplimit.NewDecider: no limits", "at least one"}},
			{[]Limit{{}}, nil, []string{"httplimit.NewDecider: limits[0]: the limiter: nil"}},
			{[]Limit{api, {}}, adapter, []string{"hybridother.Options.More[0]: the limiter: nil"}},
			{[]Limit{api}, &DeciderOptions{Headers: 9}, []string{"httplimit.DeciderOptions.Headers: Headers(9)"}},
			{[]Limit{api}, &DeciderOptions{NoKey: 200}, []string{"httplimit.DeciderOptions.NoKey: 200"}},
			{[]Limit{api}, &DeciderOptions{NoKey: 200, Owner: "hybridother.Options"}, []string{"hybridother.Options.NoKey: 200"}},
			{[]Limit{api}, &DeciderOptions{Names: Names{Limit: "a b"}}, []string{`httplimit.DeciderOptions.Names.Limit: "a b"`}},
			{[]Limit{api}, &DeciderOptions{Names: Names{Limit: "a", Reset: "a"}}, []string{"httplimit.DeciderOptions.Names.Reset:", "that of httplimit.DeciderOptions.Names.Limit"}},
			{[]Limit{api, {Limiter: api.Limiter, Name: "ü"}}, &DeciderOptions{Headers: IETF}, []string{"httplimit.NewDecider: limits[1].Name"}},
			{[]Limit{api, {Limiter: stranger}}, nil, []string{`httplimit.NewDecider: limits[1]: limiter "stranger" of another node`}},
			{[]Limit{{Limiter: api.Limiter, Key: native}}, nil, []string{"httplimit.NewDecider: limits[0].Key: made by httplimit.KeyFunc"}},
			{[]Limit{{Limiter: api.Limiter, Key: native}}, adapter, []string{"hybridother.Options.Key: made by httplimit.KeyFunc"}},
			{[]Limit{api, {Limiter: api.Limiter, Key: Join(Fixed("a"), native)}}, adapter, []string{"hybridother.Options.More[0].Key: made by httplimit.KeyFunc"}},
		} {
			d, err := NewDecider(c.limits, c.opts)
			if d != nil || !errors.Is(err, hybrid.ErrInvalidOption) {
				t.Errorf("%+v: %v, want an ErrInvalidOption", c.limits, err)
				continue
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		}
	})
}
