package httplimit

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/hybridlimit/hybrid"
)

// Each mistake is refused where the middleware is made, and the error names the
// field, its value, and what is allowed.
func TestMistakesAreRefused(t *testing.T) {
	inBubble(t, func(w *world) {
		api, dup := w.strict("api", hybrid.PerHour(10)), w.strict("ümläut", hybrid.PerHour(10))
		stranger := newWorld(w.t, w.mini).strict("stranger", hybrid.PerHour(1))
		key := func(k Key) *Options { return &Options{Key: k} }
		names := func(n Names) *Options { return &Options{Names: n} }
		for _, c := range []struct {
			limiter *hybrid.Limiter
			opts    *Options
			says    []string
		}{
			{nil, nil, []string{"httplimit.Options: the limiter: nil"}},
			{api, names(Names{Limit: "X Limit"}), []string{"httplimit.Options.Names.Limit", `"X Limit"`, "a header name"}},
			{api, names(Names{Remaining: "X-Remaining:"}), []string{"httplimit.Options.Names.Remaining", `"X-Remaining:"`}},
			{api, names(Names{Reset: "X-Reset\r\nSet-Cookie: a=b"}), []string{"httplimit.Options.Names.Reset", `\r\n`}},
			{api, names(Names{RateLimit: "Limit-ü"}), []string{"httplimit.Options.Names.RateLimit", "ü"}},
			{api, names(Names{Policy: "a\x00b"}), []string{"httplimit.Options.Names.Policy", `\x00`}},
			{api, names(Names{RetryAfter: "Retry After"}), []string{"httplimit.Options.Names.RetryAfter", `"Retry After"`}},
			{api, names(Names{Limit: strings.Repeat(" ", 1<<20)}), []string{"httplimit.Options.Names.Limit"}},
			{api, names(Names{Limit: "content-length"}), []string{"httplimit.Options.Names.Limit", "content-length", "framing"}},
			{api, names(Names{RetryAfter: "Transfer-Encoding"}), []string{"httplimit.Options.Names.RetryAfter", "framing"}},
			{api, names(Names{Limit: "x-a", Remaining: "X-A"}), []string{"httplimit.Options.Names.Remaining", `"X-A"`, "Options.Names.Limit"}},
			{api, names(Names{Limit: "retry-after"}), []string{"httplimit.Options.Names.RetryAfter", "Options.Names.Limit"}},
			{api, &Options{Headers: IETF, Names: Names{Policy: "RateLimit"}}, []string{"httplimit.Options.Names.Policy", "Options.Names.RateLimit"}},
			{api, &Options{Headers: 9}, []string{"httplimit.Options.Headers", "Headers(9)", "NoHeaders"}},
			{api, &Options{NoKey: 200}, []string{"httplimit.Options.NoKey", "200", "400 to 599"}},
			{api, &Options{NoKey: -1}, []string{"httplimit.Options.NoKey", "-1"}},
			{dup, &Options{Headers: IETF}, []string{"httplimit.Options.Name", "ümläut", "ASCII"}},
			{api, &Options{Headers: IETF, Name: "a\nb"}, []string{"httplimit.Options.Name", `a\nb`}},
			{api, &Options{Headers: IETF, More: []Check{{Limiter: dup}}}, []string{"httplimit.Options.More[0].Name", "ümläut"}},
			{api, &Options{More: []Check{{Limiter: dup}, {}}}, []string{"httplimit.Options.More[1]", "nil"}},
			{api, &Options{More: []Check{{Limiter: dup}, {Limiter: stranger}}}, []string{"httplimit.Options.More[1]", `"stranger" of another node`, `"api"`}},
			{stranger, &Options{More: []Check{{Limiter: api}}}, []string{"httplimit.Options.More[0]", `"api" of another node`, `"stranger"`}},
			{api, &Options{More: []Check{{Limiter: dup, Key: Header("a b")}}}, []string{`"a b"`}},
			{api, key(Header("X API Key")), []string{"Header", `"X API Key"`, "a header name"}},
			{api, key(Header("")), []string{"Header", `""`}},
			{api, key(Header("host")), []string{"Header", `"host"`, "other than Host"}},
			{api, key(KeyFunc(nil)), []string{"KeyFunc", "nil"}},
			{api, key(RequestKey(nil)), []string{"RequestKey", "nil"}},
			{api, key(Value(nil)), []string{"Value", "<nil>"}},
			{api, key(Value([]int{1})), []string{"Value", "[]int"}},
			{api, key(Fixed("")), []string{"Fixed", `""`}},
			{api, key(Fixed(strings.Repeat("k", longestKey+1))), []string{"Fixed", `"kkkk`, "1 to 2048 bytes"}},
			{api, key(Join()), []string{"Join", "no keys"}},
			{api, key(Join(Fixed("a"), Key{})), []string{"Join", "part 1"}},
			{api, key(Join(Fixed("a"), Header("b c"))), []string{"Header", `"b c"`}},
			{api, key(RemoteIP(&IPOptions{IPv4Bits: 33})), []string{"httplimit.IPOptions.IPv4Bits", "33", "1 to 32"}},
			{api, key(RemoteIP(&IPOptions{IPv6Bits: -1})), []string{"httplimit.IPOptions.IPv6Bits", "-1", "1 to 128"}},
			{api, key(ClientIP(nil, &IPOptions{Header: "X Real IP"})), []string{"httplimit.IPOptions.Header", `"X Real IP"`}},
			{api, key(ClientIP(nil, &IPOptions{Header: "forwarded"})), []string{"httplimit.IPOptions.Header", "Forwarded", "list of addresses"}},
			{api, key(ClientIP([]string{"10.0.0.0/33"}, nil)), []string{"ClientIP", "10.0.0.0/33", "CIDRs"}},
			{api, key(ClientIP([]string{"10.0.0.1", ""}, nil)), []string{"ClientIP", `""`}},
			{api, key(ClientIP([]string{"fe80::1%eth0"}, nil)), []string{"ClientIP", "fe80::1%eth0"}},
			{api, key(ClientIP([]string{"proxy.internal"}, nil)), []string{"ClientIP", "proxy.internal"}},
			{api, key(ClientIP([]string{"0.0.0.0/0"}, nil)), []string{"ClientIP", "0.0.0.0/0", "choose its own key"}},
			{api, key(ClientIP([]string{"::/0"}, nil)), []string{"ClientIP", "::/0"}},
			{api, key(ClientIP([]string{"::ffff:0:0/96"}, nil)), []string{"ClientIP", "::ffff:0:0/96", "IPv4"}},
		} {
			mw, err := New(c.limiter, c.opts)
			if mw != nil || !errors.Is(err, hybrid.ErrInvalidOption) {
				t.Errorf("%+v: %v, want an ErrInvalidOption", c.opts, err)
				continue
			}
			if len(err.Error()) > 400 {
				t.Errorf("an error of %d bytes: %.100s…", len(err.Error()), err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		}
		if n := w.node.Stats().Total.Keys; n != 0 {
			t.Errorf("refusing made the node remember %d keys", n)
		}
	})
}

// Names of other styles may be anything that is a name, also one that is in use.
func TestNamesOfOtherStylesDoNotClash(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.serve(w.strict("api", hybrid.PerHour(10)), &Options{Names: Names{Policy: "X-RateLimit-Limit"}})
		wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Limit", "10")
	})
}

// The options belong to their caller, who may go on and change them.
func TestOptionsAreCopied(t *testing.T) {
	inBubble(t, func(w *world) {
		opts := &Options{Key: Fixed("k"), More: []Check{{Limiter: w.strict("more", hybrid.PerHour(1))}}}
		h := w.serve(w.strict("api", hybrid.PerHour(10)), opts)
		opts.More[0] = Check{}
		*opts = Options{}
		wantStatus(t, call(h), http.StatusOK, "X-RateLimit-Limit", "1")
		wantStatus(t, call(h, from("203.0.113.9:1")), http.StatusTooManyRequests, "X-RateLimit-Limit", "1")
	})
}

func TestHeadersHaveTexts(t *testing.T) {
	for h, want := range map[Headers]string{XRateLimit: "XRateLimit", XRateLimitEpoch: "XRateLimitEpoch", IETF: "IETF", NoHeaders: "NoHeaders", 7: "Headers(7)"} {
		if got := h.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
