package debugui

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// hostile are keys that clients might choose to harm whoever reads them.
var hostile = []string{
	"</script><script>alert(1)</script>",
	`"><img src=x onerror=alert(1)>`,
	"<!--<script>",
	"{{style}}{{script}}",
	"\u2028\u2029\u202e\u0000",
	"\xff\xfe\x00\x1b[31m",
	"__proto__",
	`\u003c/script\u003e`,
}

// Keys and names are data in the answer, whatever they are, and never markup.
func TestHostileKeysAreInertInData(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(&Options{ShowKeys: true, Name: "</title><script>alert(1)</script>"})
		for i, name := range hostile {
			l := w.limiter(name, hybrid.PerHour(2), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
			use(t, l, hostile[(i+1)%len(hostile)], 10)
		}
		advance(200)
		resp := send(h, http.MethodGet, "/?format=json")
		if resp.Header.Get("Content-Type") != jsonType || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("a browser may take it for something else: %v", resp.Header)
		}
		body := bodyOf(t, resp)
		if at := strings.IndexAny(body, "<>&\u2028\u2029\u202e\x00\x1b"); at >= 0 {
			t.Errorf("there is %q in the data", body[at:min(at+40, len(body))])
		}
		var r report
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Limiters) != len(hostile) || len(r.Denied) != len(hostile) {
			t.Fatalf("%d limiters and %d keys, want %d", len(r.Limiters), len(r.Denied), len(hostile))
		}
		for _, name := range hostile {
			l := find(t, r.Limiters, "limiter "+name, func(l limiterReport) bool { return l.Name == printable(name) })
			var s story
			decode(t, send(h, http.MethodGet, "/?format=json&limiter="+l.Ref, keyHeader, "ann"), http.StatusOK, &s)
			d := find(t, r.Denied, "key "+name, func(d deniedReport) bool { return d.Key == printable(name) })
			decode(t, send(h, http.MethodGet, "/?format=json", keyIDHeader, d.ID), http.StatusOK, &s)
			if s.Key != d.Key || !strings.HasPrefix(s.Why, "Denied") {
				t.Errorf("%q: %+v", name, s)
			}
		}
		if page := bodyOf(t, send(h, http.MethodGet, "/")); strings.Contains(page, "alert(1)") {
			t.Error("the page itself holds data")
		}
	})
}

// Names may be long and alike: each is shown whole.
func TestLongNamesAreToldApart(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		for _, end := range []string{"a", "b"} {
			name := strings.Repeat("\xff", 255) + end
			use(t, w.limiter(name, hybrid.PerHour(2), &hybrid.LimiterOptions{Accuracy: hybrid.Strict}), "ann", 10)
		}
		advance(200)
		r := reported(t, h)
		if a, b := r.Limiters[0].Name, r.Limiters[1].Name; a == b || len(a) != 4*255+1 || r.Denied[0].Limiter == r.Denied[1].Limiter {
			t.Errorf("the limiters are %q and %q, of the keys %q and %q", a, b, r.Denied[0].Limiter, r.Denied[1].Limiter)
		}
	})
}

// Looks at a node that is closed meanwhile, and looks that are given up, harm nobody.
func TestLooksAtANodeThatCloses(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		api := w.limiter("api", hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
		use(t, api, "ann", 50)
		id := reported(t, h).Denied[0].ID
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 20 {
					reported(t, h)
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*200*time.Microsecond)
					r := httptest.NewRequest(http.MethodGet, "/?format=json", nil).WithContext(ctx)
					r.Header.Set(keyIDHeader, id)
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, r)
					if c := rec.Code; c != 200 && c != 404 && c != 503 {
						t.Errorf("%d: %s", c, rec.Body)
					}
					cancel()
					advance(100)
				}
			})
		}
		advance(1000)
		if err := w.node.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		r := reported(t, h)
		if len(r.Limiters) != 0 || len(r.Denied) != 0 || !strings.Contains(r.Verdict.Summary, "A node that is closed has none") {
			t.Errorf("of a closed node: %+v", r)
		}
		problemOf(t, send(h, http.MethodGet, "/?format=json", keyIDHeader, id), http.StatusNotFound)
	})
}
