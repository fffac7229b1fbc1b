package debugui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// advance lets milliseconds pass.
func advance(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) }

// ask asks for a key by its text.
func ask(h http.Handler, limiter, key string) *http.Response {
	return send(h, http.MethodGet, "/?format=json&limiter="+url.QueryEscape(limiter), keyHeader, url.PathEscape(key))
}

func problemOf(t testing.TB, resp *http.Response, status int) string {
	t.Helper()
	var p struct{ Error string }
	decode(t, resp, status, &p)
	return p.Error
}

// An operator sees who is denied most, and asks why, without knowing the key.
func TestStoryOfAListedKey(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		api := w.limiter("api", hybrid.PerMinute(60), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
		// The last requests come right before the look: what time earns them is spent.
		for range 20 {
			advance(100)
			use(t, api, "customer-42", 20)
			use(t, api, "customer-7", 1)
		}
		resp := send(h, http.MethodGet, "/?format=json")
		body := bodyOf(t, resp)
		if strings.Contains(body, "customer-42") || strings.Contains(body, "customer") {
			t.Fatalf("the list names a key: %s", body)
		}
		r := reported(t, h)
		if len(r.Denied) != 1 || !strings.HasPrefix(r.Denied[0].Key, "cus…") {
			t.Fatalf("denied most: %+v", r.Denied)
		}
		var s story
		decode(t, send(h, http.MethodGet, "/?format=json", keyIDHeader, r.Denied[0].ID), http.StatusOK, &s)
		if s.Key != r.Denied[0].Key || s.Limiter != "api" || s.Limit != "60 per minute" || !s.Known || !strings.HasPrefix(s.Why, "Denied") {
			t.Errorf("the story is %+v", s)
		}
		if a := s.Account; a == nil || a.Used.Value < 50 || a.Free.Value > 10 || a.UsedBar+a.LentBar < 80 || !strings.Contains(a.Words, "of 60 tokens are used") {
			t.Errorf("the account is %+v, missing %q", a, s.Missing)
		}
		denials := find(t, s.Here, "denials", func(f fact) bool { return f.Name == "denials" })
		if denials.Value < 10 {
			t.Errorf("denials: %+v", denials)
		}
		if memo := find(t, s.Here, "memo", func(f fact) bool { return f.Name == "deny memo" }); memo.Value != 1 || !strings.Contains(memo.Note, "denied from memory, for ") {
			t.Errorf("memo: %+v", memo)
		}
	})
}

func TestStoryOfATypedKey(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		for _, name := range []string{"api", "per user/day & more", "\xff</script>"} {
			l := w.limiter(name, hybrid.PerHour(1000), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
			for _, key := range []string{"customer-42", "100 %", "müller", "\x00\xff\n</script>", "", strings.Repeat("long", 50)} {
				use(t, l, key, 3)
				var s story
				decode(t, ask(h, name, key), http.StatusOK, &s)
				if !s.Known || !strings.HasPrefix(s.Why, "Allowed") || key != "" && s.Key == key {
					t.Errorf("limiter %q, key %q: %+v", name, key, s)
				}
			}
		}
		var s story
		decode(t, ask(h, "api", "never seen"), http.StatusOK, &s)
		if s.Known || s.Account == nil || s.Account.Used.Value != 0 || s.Account.Free.Value != 1000 {
			t.Errorf("a key that nobody has used: %+v", s)
		}
	})
}

// A look at a key costs it nothing, however often somebody looks.
func TestStoriesChargeNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		w.limiter("jobs", hybrid.PerDay(3), nil)
		var s story
		for range 20 {
			decode(t, ask(h, "jobs", "ann"), http.StatusOK, &s)
			advance(100)
		}
		if s.Account.Used.Value != 0 || s.Account.Lent.Value != 0 {
			t.Errorf("twenty looks used %+v", s.Account)
		}
	})
}

func TestStoriesThatCannotBeTold(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		closed := w.limiter("closed", hybrid.PerHour(10), nil)
		w.limiter("api", hybrid.PerHour(10), nil)
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			resp   *http.Response
			status int
			want   string
		}{
			{ask(h, "nobody", "ann"), 404, "no limiter of that name"},
			{ask(h, "closed", "ann"), 404, "no limiter of that name"},
			{ask(h, "api", strings.Repeat("k", 64<<10+1)), 400, "longer than 64 KiB"},
			{send(h, "GET", "/?format=json&limiter=api"), 400, "needs both"},
			{send(h, "GET", "/?format=json", keyHeader, "ann"), 400, "needs both"},
			{send(h, "GET", "/?format=json&limiter=api", keyHeader, "100%"), 400, "percent-encoded"},
			{send(h, "GET", "/?format=json&limiter=api&limiter=api", keyHeader, "ann"), 400, "one key"},
			{send(h, "GET", "/?format=json&limiter=api", keyHeader, "ann", keyIDHeader, "1"), 400, "one key"},
			{send(h, "GET", "/?format=json", keyIDHeader, "0123456789abcdef0123456789abcdef"), 404, "no such key was listed"},
		} {
			if got := problemOf(t, c.resp, c.status); !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		}
	})
}

// Of a long key the node keeps a digest alone, which is no key to ask for.
func TestLongKeysAreAskedForByTheirText(t *testing.T) {
	inBubble(t, func(w *world) {
		h, long := w.handler(&Options{ShowKeys: true}), strings.Repeat("long", 50)
		use(t, w.limiter("api", hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict}), long, 50)
		r := reported(t, h)
		d := find(t, r.Denied, "denied key", func(d deniedReport) bool { return strings.HasPrefix(d.Key, "#") })
		if got := problemOf(t, send(h, http.MethodGet, "/?format=json", keyIDHeader, d.ID), http.StatusUnprocessableEntity); !strings.Contains(got, "by its text") {
			t.Error(got)
		}
		var s story
		decode(t, ask(h, "api", long), http.StatusOK, &s)
		if s.Key != d.Key || !strings.HasPrefix(s.Why, "Denied") {
			t.Errorf("%+v, listed as %s", s, d.Key)
		}
	})
}

func TestStoryWithoutRedis(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		login := w.limiter("login", hybrid.PerHour(10), &hybrid.LimiterOptions{OnFailure: hybrid.FailClosed})
		w.breakRedis()
		for range 30 {
			use(t, login, "ann", 1)
			advance(50)
		}
		var s story
		decode(t, ask(h, "login", "ann"), http.StatusOK, &s)
		if s.Account != nil || !strings.HasPrefix(s.Missing, "Not known: ") || !strings.Contains(s.Why, "FailClosed denies all") {
			t.Errorf("without Redis the story is %+v", s)
		}
	})
}
