package debugui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// A limiter in shadow mode denies nothing, whatever it counts: the page says what passes,
// and what would not.
func TestShadowModeAdmitsEverything(t *testing.T) {
	inBubble(t, func(w *world) {
		trial := w.limiter("trial", hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
		h := w.handler(nil)
		use(t, trial, "k", 100)
		reported(t, h)
		use(t, trial, "k", 100)
		time.Sleep(2 * time.Second)
		body := bodyOf(t, send(h, http.MethodGet, "/?format=json"))
		r := reported(t, h)
		l := r.Limiters[0]
		if !l.Shadow || l.Bound != "no bound: shadow mode" || l.Overshoot.Text != "no bound" || !strings.Contains(body, `"overshoot":{"value":null,"text":"no bound"}`) {
			t.Errorf("the bound is %q, overshoot %+v", l.Bound, l.Overshoot)
		}
		if l.Admitted.Text != "50/s" || l.Denied.Text != "0/s" || l.DeniedPart.Value != 0 || l.Shadowed.Text != "50/s" || l.ShadowedPart.Value != 1 {
			t.Errorf("%s admitted, %s denied, %s would be: %+v", l.Admitted.Text, l.Denied.Text, l.Shadowed.Text, l)
		}
		if n := r.Node; n.Admitted.Text != "50/s" || n.Denied.Text != "0/s" || n.DeniedPart.Value != 0 || n.Shadowed.Text != "50/s" {
			t.Errorf("of the node %s admitted, %s denied, %s would be", n.Admitted.Text, n.Denied.Text, n.Shadowed.Text)
		}
		if l.LimitsUsed.Value < 35_000 || !strings.HasSuffix(l.Chart.Words, "50/s that would be denied") {
			t.Errorf("%+v are admitted: %s", l.LimitsUsed, l.Chart.Words)
		}
		if s := r.Verdict.Summary; !strings.HasPrefix(s, "50/s decided, 100 % only let through in shadow mode.") {
			t.Error(s)
		}
		count := func(name string) number {
			return find(t, l.Counters, name, func(c namedCount) bool { return c.Name == name }).Count.Value
		}
		if count("admitted") != 200 || count("denied") != 0 || count("shadowed") != 195 {
			t.Errorf("%v admitted, %v denied, %v would be, want 200, 0 and 195", count("admitted"), count("denied"), count("shadowed"))
		}
		if d := r.Denied; len(d) != 1 || !d[0].Shadow {
			t.Errorf("denied most: %+v", d)
		}
		var s story
		decode(t, ask(h, "trial", "k"), http.StatusOK, &s)
		if !s.Shadow || !strings.HasPrefix(s.Why, "Denied, and let through in shadow mode") {
			t.Errorf("the story is %+v", s)
		}
		for name, want := range map[string]string{"deny memo": "would be denied from memory", "denials": "that would be denied"} {
			if f := find(t, s.Here, name, func(f fact) bool { return f.Name == name }); !strings.Contains(f.Note, want) {
				t.Errorf("%+v", f)
			}
		}
	})
}

// Limiters in shadow mode and others have their own parts of what the node does.
func TestNodeTellsShadowsFromDenials(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		for name, shadow := range map[string]bool{"trial": true, "login": false} {
			l := w.limiter(name, hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: shadow})
			use(t, l, "k", 10)
		}
		reported(t, h)
		for _, l := range w.node.Limiters() {
			use(t, l, "k", 100)
		}
		time.Sleep(2 * time.Second)
		r := reported(t, h)
		if n := r.Node; n.Admitted.Text != "50/s" || n.Denied.Text != "50/s" || n.DeniedPart.Value != 0.5 || n.Shadowed.Text != "50/s" {
			t.Errorf("%s admitted, %s denied, %s would be", n.Admitted.Text, n.Denied.Text, n.Shadowed.Text)
		}
		if s := r.Verdict.Summary; !strings.HasPrefix(s, "100/s decided, 50 % of them denied, 50 % only let through in shadow mode.") {
			t.Error(s)
		}
		for _, d := range r.Denied {
			if d.Shadow != (d.Limiter == "trial") {
				t.Errorf("%+v", d)
			}
		}
	})
}

// Without Redis too: its failure policy denies nobody.
func TestShadowModeInAnOutage(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		trial := w.limiter("trial", hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: hybrid.FailClosed, Shadow: true})
		w.breakRedis()
		for range 50 {
			use(t, trial, "k", 1)
			advance(100)
			reported(t, h)
		}
		r := reported(t, h)
		l := r.Limiters[0]
		if !r.Store.Down || l.Bound != "no bound: shadow mode" || l.Admitted.Value < 9 || l.Denied.Value != 0 || l.Shadowed.Value < 9 {
			t.Errorf("%s, %s admitted, %s denied, %s would be", l.Bound, l.Admitted.Text, l.Denied.Text, l.Shadowed.Text)
		}
		if c := r.Verdict.Callers; len(c) != 1 || c[0].Text != "everything is admitted: shadow mode" {
			t.Errorf("%+v", c)
		}
	})
}

// Whoever looks reads what would be denied, and nowhere that it is.
func TestShadowModeInABrowser(t *testing.T) {
	b := openBrowser(t, 1280, 1000)
	rdb := redis.NewClient(&redis.Options{Addr: redistest.Mini(t).Addr(), ContextTimeoutEnabled: true})
	node, err := hybrid.New(rdb, &hybrid.Options{Logger: silent, StoreTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = node.Close()
		_ = rdb.Close()
	})
	trial, err := node.Limiter("trial", hybrid.PerHour(5), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(traffic(t, trial, "customer-42"))
	page, err := Handler(node, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	b.do(chromedp.Navigate(server.URL))
	b.want("it says what would be denied", `/[1-9]\S*\/s\s+of them would be denied, 100 %/.test(document.querySelector(".pair")?.innerText)`)
	b.want("and not that it is", `!/[0-9] %?\s*denied/.test(document.querySelector("article").innerText)`)
	b.wantText("article thead", "would be denied")
	b.wantText("article dl", "no bound: shadow mode")
	b.wantText(".tiles", "only let through in shadow mode")
	b.wantText(".summary", "100 % only let through in shadow mode")
	b.wantText("[data-list=denied]", "in shadow mode: would be denied")
	b.do(runs(`document.querySelector("button.key").click()`))
	b.wantText("#story .of", "in shadow mode: nothing is denied")
	b.wantText("#story .why", "Denied, and let through in shadow mode")
	if got := b.console(); len(got) != 0 {
		t.Errorf("the console has %q", got)
	}
	if *screenshot {
		time.Sleep(10 * time.Second)
		save(t, b, "debugui-shadow", false)
	}
}
