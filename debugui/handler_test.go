package debugui

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

func TestPageOnlyShows(t *testing.T) {
	h := (&script{}).handler()
	for method, want := range map[string]int{
		http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodPut: 405, http.MethodPatch: 405,
		http.MethodDelete: 405, http.MethodOptions: 405, http.MethodConnect: 405, http.MethodTrace: 405, "PROPFIND": 405,
	} {
		for _, target := range []string{"/debug/hybrid", "/debug/hybrid?format=json"} {
			resp := send(h, method, target)
			if resp.StatusCode != want {
				t.Errorf("%s %s: %d, want %d", method, target, resp.StatusCode, want)
			}
			if allow := resp.Header.Get("Allow"); (want == 405) != (allow == "GET, HEAD") {
				t.Errorf("%s %s: Allow is %q", method, target, allow)
			}
		}
	}
}

// Every response has them, those to requests that are wrong too.
func TestResponsesAreNeitherKeptNorFramed(t *testing.T) {
	h := (&script{}).handler()
	for name, resp := range map[string]*http.Response{
		"page": send(h, http.MethodGet, "/"), "data": send(h, http.MethodGet, "/?format=json"), "head": send(h, http.MethodHead, "/"),
		"method": send(h, http.MethodPost, "/"), "format": send(h, http.MethodGet, "/?format=xml"), "key": send(h, http.MethodGet, "/?format=json&limiter=a"),
	} {
		for header, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Content-Security-Policy": policy, "Vary": "Accept",
		} {
			if got := resp.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s: other origins may read it: %q", name, got)
		}
	}
}

// The policy allows what is in the page and nothing else, and the page needs nothing else.
func TestPolicyFitsThePage(t *testing.T) {
	resp := send((&script{}).handler(), http.MethodGet, "/")
	body, csp := bodyOf(t, resp), resp.Header.Get("Content-Security-Policy")
	for directive, element := range map[string]string{"style-src": "style", "script-src": "script"} {
		parts := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(body, -1)
		if len(parts) != 1 {
			t.Fatalf("%d elements %s, want 1", len(parts), element)
		}
		sum := sha256.Sum256([]byte(parts[0][1]))
		want := directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q has no %q", csp, want)
		}
	}
	for _, want := range []string{"default-src 'none';", "connect-src 'self';", "frame-ancestors 'none';", "form-action 'none';", "base-uri 'none';", "require-trusted-types-for 'script'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q has no %q", csp, want)
		}
	}
	for _, never := range []string{"unsafe", "http:", "https:", "*"} {
		if strings.Contains(csp, never) {
			t.Errorf("the policy %q has %q", csp, never)
		}
	}
	own := strings.ReplaceAll(body, `"http://www.w3.org/2000/svg"`, "") // a name, which nobody fetches
	if found := regexp.MustCompile(`(?i)https?://|\sstyle=|\son[a-z]+=|javascript:|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|@import|url\(`).FindAllString(own, -1); found != nil {
		t.Errorf("the page has %q", found)
	}
}

func TestProgramsGetDataAndPeopleThePage(t *testing.T) {
	h := (&script{}).handler()
	for _, c := range []struct{ target, accept, want string }{
		{"/", "", "text/html; charset=utf-8"},
		{"/", "*/*", "text/html; charset=utf-8"},
		{"/", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"},
		{"/", "text/html, application/json", "text/html; charset=utf-8"},
		{"/", "application/json", jsonType},
		{"/", "application/json; q=0.9, */*;q=0.1", jsonType},
		{"/", "nonsense;;; , application/json", jsonType},
		{"/?format=json", "text/html", jsonType},
		{"/?format=html", "application/json", "text/html; charset=utf-8"},
		{"/", "application/json;q=0", "text/html; charset=utf-8"},
		{"/", "application/json;q=nonsense, */*", "text/html; charset=utf-8"},
		{"/", "application/json, text/html;q=0.5", jsonType},
		{"/", "text/html;q=0, application/json;q=0.1", jsonType},
		{"/", "APPLICATION/JSON", jsonType},
		{"/", strings.Repeat(",", 10_000), "text/html; charset=utf-8"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			resp := send(h, method, c.target, "Accept", c.accept)
			if got := resp.Header.Get("Content-Type"); got != c.want || resp.StatusCode != http.StatusOK {
				t.Errorf("%s %s of who accepts %q: %d, %s, want %s", method, c.target, c.accept, resp.StatusCode, got, c.want)
			}
		}
	}
}

// A query of which a part cannot be read is no other query.
func TestQueriesAreReadWhole(t *testing.T) {
	h := (&script{}).handler()
	for _, target := range []string{"/?format=json&limiter=%zz", "/?format=json;limiter=api", "/?%", "/?format=xml", "/?format=json%00"} {
		problemOf(t, send(h, http.MethodGet, target, keyHeader, "ann"), http.StatusBadRequest)
	}
}

// What curl gets is for programs too: numbers beside their words, and lists that are never null.
func TestDataOfAnEmptyNode(t *testing.T) {
	inBubble(t, func(w *world) {
		var got map[string]any
		decode(t, send(w.handler(&Options{Name: "server-1"}), http.MethodGet, "/", "Accept", "application/json"), http.StatusOK, &got)
		for _, list := range []string{"limiters", "denied"} {
			if items, ok := got[list].([]any); !ok || len(items) != 0 {
				t.Errorf("%s is %v, want an empty list", list, got[list])
			}
		}
		verdict := got["verdict"].(map[string]any)
		if got["name"] != "server-1" || verdict["level"] != levelOK || verdict["headline"] != "All is well: this node has no limiters" {
			t.Errorf("%v says %v", got["name"], verdict)
		}
		node := got["node"].(map[string]any)
		if keys := node["max_keys"].(map[string]any); keys["value"] != float64(1<<20) || keys["text"] != "1.05 M" {
			t.Errorf("max_keys is %v", keys)
		}
		if node["fleet"].(map[string]any)["text"] != "not known yet" || node["has_no_limiter"] != true {
			t.Errorf("the node is %v", node)
		}
	})
}

func TestDataOfABusyLimiter(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		api := w.limiter("api", hybrid.PerMinute(600), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: hybrid.FailClosed})
		reported(t, h)
		for range 30 {
			use(t, api, "customer-1", 50)
			advance(100)
		}
		r := reported(t, h)
		l := r.Limiters[0]
		if l.Name != "api" || l.Limit != "600 per minute" || l.Accuracy != "Strict" || l.OnFailure != "FailClosed" || l.Bound != "never above the limit" || l.Fleet.Value != 1 {
			t.Errorf("the limiter is %+v", l)
		}
		if sum := l.Admitted.Value + l.Denied.Value; sum < 490 || sum > 501 || l.Admitted.Value < 200 || l.Denied.Value < 200 {
			t.Errorf("%v admitted and %v denied a second, want 500 together", l.Admitted.Value, l.Denied.Value)
		}
		if used := l.LimitsUsed; used.Value < 20 || used.Value > 22 || !strings.HasPrefix(used.Text, "what 2") { // its burst and what it refilled, in 3 s
			t.Errorf("%+v of a limit of 10/s", used)
		}
		var sum number
		for _, p := range l.Paths {
			for _, f := range []*figure{p.Admitted, p.Denied} {
				if f != nil {
					sum += f.Value
				}
			}
		}
		if diff := sum - l.Admitted.Value - l.Denied.Value; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("the paths make %v, all decisions are %v", sum, l.Admitted.Value+l.Denied.Value)
		}
		slice := find(t, l.Counters, "slice_tokens", func(c namedCount) bool { return c.Name == "slice_tokens" })
		if slice.What != "tokens admitted from slices" || slice.Count.Value <= 0 {
			t.Errorf("%+v", slice)
		}
		memo := find(t, l.Paths, "memo", func(p pathReport) bool { return p.Path == "memo" })
		if memo.Admitted != nil || memo.Denied.Value < 200 {
			t.Errorf("memory admitted %v and denied %v", memo.Admitted, memo.Denied)
		}
		d := find(t, r.Denied, "denied key", func(deniedReport) bool { return true })
		if d.Limiter != "api" || d.Rate.Value < 50 || d.Total.Value < 500 || d.Bar != 100 || len(r.Denied) != 1 {
			t.Errorf("denied most: %+v", r.Denied)
		}
		if c := r.Store.CallTime; c.Count.Value < 1 || c.P50.Value <= 0 || c.P99.Value < c.P50.Value || r.Store.Batch.Mean.Value < 1 {
			t.Errorf("calls: %+v, batches: %+v", c, r.Store.Batch)
		}
		if each := r.Node.OperationsEach.Value; each <= 0 || each > 1 {
			t.Errorf("%v operations per request", each)
		}
		if !strings.HasPrefix(r.Verdict.Headline, "All is well") || r.Store.SyncLag.Value > 2 {
			t.Errorf("%+v, sync lag %v", r.Verdict, r.Store.SyncLag)
		}
		if chart := l.Chart; len(chart.Ages) != 1 || chart.Up.Value <= 0 || chart.Down.Value <= 0 || len(chart.Series) != len(paths) {
			t.Errorf("the chart is %+v", chart)
		}
	})
}

// Not all that Redis is not asked for is memory or slices: what can never fit is denied on
// the path that asks.
func TestExactPathSaysWhatRedisIsNotAskedFor(t *testing.T) {
	inBubble(t, func(w *world) {
		h := w.handler(nil)
		none := w.limiter("none", hybrid.PerHour(0), nil)
		reported(t, h)
		use(t, none, "ann", 20)
		time.Sleep(2 * time.Second)
		p := find(t, reported(t, h).Limiters[0].Paths, "exact", func(p pathReport) bool { return p.Path == "exact" })
		if p.Denied.Text != "10/s" || !strings.Contains(p.What, "it can never fit, as with a limit of 0") {
			t.Errorf("%+v, %+v", p, p.Denied)
		}
	})
}

func TestWrongOptions(t *testing.T) {
	if _, err := Handler(nil, nil); !errors.Is(err, hybrid.ErrInvalidOption) || !strings.Contains(err.Error(), "node") {
		t.Errorf("without a node: %v", err)
	}
	inBubble(t, func(w *world) {
		_, err := Handler(w.node, &Options{Name: strings.Repeat("n", 129)})
		if !errors.Is(err, hybrid.ErrInvalidOption) || !strings.Contains(err.Error(), "Options.Name: 129 bytes, allowed up to 128 bytes") {
			t.Errorf("a long name: %v", err)
		}
		if r := reported(t, w.handler(nil)); r.Name == "" {
			t.Error("the page does not say which server it is of")
		}
	})
}
