package debugui

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// service is a node under traffic, and its page behind authentication, in real time.
type service struct {
	mini   *miniredis.Miniredis
	server *httptest.Server
	url    string // of the masked page, with the name and the password in it
	shown  string // of a page that shows keys
}

// startService serves a node with a limiter that denies, one that does not, and names
// and keys that nobody should trust.
func startService(t *testing.T) *service {
	t.Helper()
	s := &service{mini: redistest.Mini(t)}
	rdb := redis.NewClient(&redis.Options{Addr: s.mini.Addr(), ContextTimeoutEnabled: true})
	// Timeouts of a busy machine are not what is tested.
	node, err := hybrid.New(rdb, &hybrid.Options{Logger: silent, StoreTimeout: time.Second, SyncInterval: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = node.Close() // its Redis may be broken
		_ = rdb.Close()
	})
	var stop []func()
	for name, policy := range map[string]hybrid.FailurePolicy{"api": hybrid.FailLocal, "login": hybrid.FailClosed, hostile[0]: hybrid.FailOpen} {
		l, err := node.Limiter(name, hybrid.PerMinute(60), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: policy})
		if err != nil {
			t.Fatal(err)
		}
		stop = append(stop, traffic(t, l, "customer-42", hostile[1]))
	}
	t.Cleanup(func() {
		for _, s := range stop {
			s()
		}
	})
	s.serve(t, node)
	return s
}

// traffic sends more than a limiter admits, until it is stopped.
func traffic(t *testing.T, l *hybrid.Limiter, keys ...string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, key := range keys {
				if _, err := l.Allow(ctx, key); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (s *service) serve(t *testing.T, node *hybrid.Node) {
	t.Helper()
	mux := http.NewServeMux()
	for path, opts := range map[string]*Options{"/debug/hybrid": {Name: "server-1"}, "/shown/": {ShowKeys: true, Name: hostile[0]}} {
		page, err := Handler(node, opts)
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle(path, page)
	}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "operator" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="debug"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	base, err := url.Parse(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	base.User = url.UserPassword("operator", "secret")
	s.url, s.shown = base.JoinPath("debug", "hybrid").String(), base.JoinPath("shown/").String()
}

// One evening of an operator.
func TestPageInABrowser(t *testing.T) {
	s, b := startService(t), openBrowser(t, 1280, 1000)
	b.do(chromedp.Navigate(s.url))
	b.wantText("h1", "All is well")
	b.want("the title says so", `document.title === "OK · server-1"`)
	b.want("each limiter has a card", `document.querySelectorAll("article.card").length === 3`)
	seeNoStory(b)
	seeUpdates(b)
	seeGaps(b)
	seeStory(b)
	seeTyped(b)
	seeOutage(b, s)
	seeNarrow(b)
	seeHidden(b)
	seeInert(b, s)
	seeNoData(b)
	if got := b.console(); len(got) != 0 {
		t.Errorf("the console has %q", got)
	}
	host := strings.TrimPrefix(s.server.URL, "http://")
	for _, asked := range b.requested() {
		u, err := url.Parse(asked)
		if err != nil || u.Host != host && asked != "data:," || strings.Contains(asked, "customer") {
			t.Errorf("the page asked for %s", asked)
		}
	}
	seeLost(b, s)
}

// Nothing is told of a key before somebody asks for one.
func seeNoStory(b *browser) {
	b.t.Helper()
	b.want("no story is told", `document.getElementById("story").getClientRects().length === 0`)
	b.wantText("#telling", "Choose a key from the list")
	if got := b.text("#telling"); strings.Contains(got, "As of") || strings.Contains(got, "remember") {
		b.t.Errorf("before a key is chosen the page says %q", got)
	}
}

// Whoever comes back after a minute sees what happened before and since. One decision
// is as wide as the second in which it was counted.
func seeGaps(b *browser) {
	b.t.Helper()
	b.do(runs(`window.drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg"); draw(window.drawn, {
		since: [101, 100, 20], ages: [100, 99, 19], span: 120, line: null, up: {value: 1}, down: {value: 0},
		series: [{path: "slice", admitted: [0, 1, 1]}]})`))
	if got, want := eval[string](b, `window.drawn.querySelector("[data-path=slice]").getAttribute("d")`),
		"M19.00 40.00L20.00 40.00L20.00 0.00L21.00 0.00L21.00 40.00L20.00 40.00L20.00 40.00L19.00 40.00"+
			"M100.00 0.00L101.00 0.00L101.00 40.00L100.00 40.00"; got != want {
		b.t.Errorf("two looks, a gap and a look are drawn as %s, want %s", got, want)
	}
	if got, want := eval[string](b, `window.drawn.querySelector("[data-path=zero]").getAttribute("d")`),
		"M19.00 40.00L20.00 40.00L20.00 40.00L21.00 40.00M100.00 40.00L101.00 40.00"; got != want {
		b.t.Errorf("the line of zero is %s, want %s", got, want)
	}
}

// Numbers move, and rows stay while they do.
func seeUpdates(b *browser) {
	b.t.Helper()
	b.do(runs(`window.row = document.querySelector("[data-list=paths]").children[0]; window.clock = document.querySelector(".clock").textContent; window.area = ""`))
	b.want("the clock moves", `document.querySelector(".clock").textContent !== window.clock`)
	b.want("a chart is drawn", `document.querySelector(".chart [data-path=memo]").getAttribute("d").length > 40`)
	b.want("a row is still the same one", `window.row === document.querySelector("[data-list=paths]").children[0]`)
	b.want("denials are counted", `parseFloat(document.querySelector("tr[data-path=memo] td:last-child").textContent) > 10`)
}

// Who is denied, and why: with a click, and without the page knowing the key.
func seeStory(b *browser) {
	b.t.Helper()
	b.want("both keys of all limiters are listed", `document.querySelectorAll("button.key").length === 6`)
	b.do(chromedp.Click(`//tr[contains(td, "api")]//button[starts-with(text(), "cus…")]`))
	b.wantText("#story .why", "Denied: ")
	b.wantText("#story .of", "api: 60 per minute")
	b.wantText("#story", "of 60 tokens are used")
	if all := eval[string](b, "document.documentElement.outerHTML"); strings.Contains(all, "customer-42") {
		b.t.Error("the page knows the key")
	}
}

// A key that the operator was told of, by hand.
func seeTyped(b *browser) {
	b.t.Helper()
	b.do(chromedp.Steps(
		chromedp.SetValue("#limiter", "login"), chromedp.SendKeys("#key", "nobody & <b>ünï</b> 100%"), chromedp.SendKeys("#key", kb.Enter)))
	b.wantText("#story .of", "login")
	b.wantText("#story .why", "Allowed: ")
	b.want("it is not remembered", `document.querySelector("#story").innerText.includes("does not remember")`)
}

// Redis goes and comes back, while somebody looks.
func seeOutage(b *browser, s *service) {
	b.t.Helper()
	s.mini.SetError(redistest.Loading)
	b.wantText("h1", "Redis does not answer")
	b.want("it is the page that alarms", `document.body.dataset.level === "bad" && document.title === "Down · server-1"`)
	b.wantText(".word", "Down")
	b.want("somebody who listens is told", `document.getElementById("announce").textContent.startsWith("Down: Redis does not answer")`)
	for limiter, want := range map[string]string{"api": "its fair share", "login": "everything is denied", hostile[0]: "without limit"} {
		b.want("callers of "+limiter, `[...document.querySelectorAll(".callers tbody tr")].some(r => r.children[0].innerText === `+quoted(limiter)+` && r.innerText.includes(`+quoted(want)+`))`)
	}
	b.want("it lasts", `document.querySelector("tr[data-state=down]").innerText.includes("lasts")`)
	b.wantText("tr[data-state=down]", "reply LOADING")
	s.mini.SetError("")
	b.wantText("h1", "All is well")
	b.wantText("tr[data-state=over]", "ago")
	b.wantText(".also", "Redis was away for")
	b.want("what callers get is not shown any more", `document.querySelector(".callers").hidden`)
}

// A phone, at night.
func seeNarrow(b *browser) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(360, 740))
	b.want("nothing is cut off", `document.documentElement.scrollWidth <= 360`)
	back := map[string]string{}
	for _, name := range []string{"dark", "light"} {
		b.scheme(name)
		back[name] = eval[string](b, "getComputedStyle(document.body).backgroundColor")
	}
	if back["dark"] == back["light"] {
		b.t.Errorf("dark and light are %v", back)
	}
}

// A tab in the background asks for nothing.
func seeHidden(b *browser) {
	b.t.Helper()
	hide := func(hidden bool) {
		b.t.Helper()
		b.do(runs(fmt.Sprintf(`Object.defineProperty(document, "hidden", {configurable: true, get: () => %t}); document.dispatchEvent(new Event("visibilitychange"))`, hidden)))
	}
	hide(true)
	time.Sleep(300 * time.Millisecond) // what was under way
	before := len(b.requested())
	time.Sleep(1500 * time.Millisecond)
	if asked := b.requested()[before:]; len(asked) != 0 {
		b.t.Errorf("a hidden page asked for %q", asked)
	}
	hide(false)
	for end := time.Now().Add(patience); len(b.requested()) < before+2; time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatal("a page that is looked at again asks for nothing")
		}
	}
}

// Names and keys that would be markup are text.
func seeInert(b *browser, s *service) {
	b.t.Helper()
	b.do(chromedp.Navigate(s.shown))
	b.want("the key is text", `[...document.querySelectorAll("button.key")].some(e => e.textContent === `+quoted(hostile[1])+`)`)
	b.want("the limiter is text", `[...document.querySelectorAll("article h3")].some(e => e.textContent === `+quoted(hostile[0])+`)`)
	b.want("so is the server", `document.querySelector(".who b").textContent === `+quoted(hostile[0]))
	b.want("nothing was made of them", `document.querySelectorAll("img").length === 0 && document.scripts.length === 1`)
	b.do(chromedp.Click(`//button[contains(text(), "onerror")]`))
	b.wantText("#story .of", hostile[1])
}

// A proxy that asks who somebody is, with a page and 200, is no server without numbers.
func seeNoData(b *browser) {
	b.t.Helper()
	b.do(runs(`window.real = fetch; window.fetch = async () => new Response("<html>Who are you?</html>", {headers: {"Content-Type": "text/html"}})`))
	b.wantText("h1", "This server does not answer")
	b.wantText(".summary", "What is below is of ")
	b.wantText(".summary", "you are signed out (the answer was 200, and no data)")
	b.do(runs(`window.fetch = window.real`))
	b.wantText("h1", "All is well")
}

// The server goes away: the numbers are old, and the page says so.
func seeLost(b *browser, s *service) {
	b.t.Helper()
	s.server.Close()
	b.wantText("h1", "This server does not answer")
	b.wantText(".summary", "What is below is of ")
	b.want("it alarms", `document.body.dataset.level === "bad" && document.body.classList.contains("stale") && document.title.startsWith("Lost")`)
}

// Until its script has numbers, or where it never gets any, the page does not say that
// there is no limiter, no outage and no failure.
func TestPageClaimsNothingBeforeItKnows(t *testing.T) {
	claims := regexp.MustCompile(`<[^>]* data-b="hidden:![^>]*>`).FindAllString(pageHTML[:strings.Index(pageHTML, "<template")], -1)
	if len(claims) < 8 {
		t.Errorf("the page has %d parts that are shown if something is so", len(claims))
	}
	for _, tag := range claims {
		if !strings.Contains(tag, " hidden data-b=") {
			t.Errorf("it is there from the start: %s", tag)
		}
	}
}
