package httplimit_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// The functions of this file are the snippets of docs/http.md, word for word:
// TestDocsAreTheseFunctions. Their examples run them.

func byAPIKey(node *hybrid.Node, next http.Handler) (http.Handler, error) {
	api, err := node.Limiter("api", hybrid.PerMinute(1000), nil)
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(api, &httplimit.Options{
		Key:   httplimit.Header("X-API-Key"),
		NoKey: http.StatusUnauthorized, // of a request that has none
	})
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}

func Example_byAPIKey() {
	runDoc(byAPIKey, func(h http.Handler) {
		get(h, "203.0.113.9:1234", "/", []string{"X-API-Key: k1"}, "X-Ratelimit-Limit", "X-Ratelimit-Remaining")
		get(h, "203.0.113.9:1234", "/", nil)
	})
	// Output:
	// 200 X-Ratelimit-Limit=1000 X-Ratelimit-Remaining=999
	// 401
}

func byClientIP(node *hybrid.Node, next http.Handler) (http.Handler, error) {
	visitors, err := node.Limiter("visitors", hybrid.PerSecond(10).WithBurst(50), nil)
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(visitors, &httplimit.Options{
		// The networks of your own proxies, and nothing else.
		Key: httplimit.ClientIP([]string{"10.0.0.0/8", "fd00::/8"}, nil),
		// Health checks come from the load balancer itself.
		Skip: func(r *http.Request) bool { return r.URL.Path == "/healthz" },
	})
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}

func Example_byClientIP() {
	runDoc(byClientIP, func(h http.Handler) {
		get(h, "10.0.0.1:80", "/", []string{"X-Forwarded-For: 203.0.113.9"}, "X-Ratelimit-Remaining")
		get(h, "10.0.0.1:80", "/", []string{"X-Forwarded-For: 203.0.113.10"}, "X-Ratelimit-Remaining")
		get(h, "10.0.0.1:80", "/healthz", nil, "X-Ratelimit-Remaining")
	})
	// Output:
	// 200 X-Ratelimit-Remaining=49
	// 200 X-Ratelimit-Remaining=49
	// 200
}

func perRoute(node *hybrid.Node, search, items http.Handler) (http.Handler, error) {
	// Search is dear, and has a limit of its own.
	dear, err := node.Limiter("search", hybrid.PerMinute(20), nil)
	if err != nil {
		return nil, err
	}
	searches, err := httplimit.New(dear, nil) // per remote address
	if err != nil {
		return nil, err
	}
	// All other routes share one limiter; each address has a budget on each of them.
	cheap, err := node.Limiter("routes", hybrid.PerMinute(600), nil)
	if err != nil {
		return nil, err
	}
	routes, err := httplimit.New(cheap, &httplimit.Options{
		Key: httplimit.Join(httplimit.Pattern(), httplimit.RemoteIP(nil)),
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /search", searches(search))
	mux.Handle("GET /items/{id}", routes(items))
	mux.Handle("DELETE /items/{id}", routes(items))
	return mux, nil
}

func Example_perRoute() {
	runDoc(func(node *hybrid.Node, next http.Handler) (http.Handler, error) { return perRoute(node, next, next) }, func(h http.Handler) {
		for _, path := range []string{"/search", "/items/1", "/items/2"} {
			get(h, "203.0.113.9:1234", path, nil, "X-Ratelimit-Limit")
		}
	})
	// Output:
	// 200 X-Ratelimit-Limit=20
	// 200 X-Ratelimit-Limit=600
	// 200 X-Ratelimit-Limit=600
}

// plans is what your service knows of its customers, in memory.
type plans struct {
	mu   sync.RWMutex
	byID map[string]string // API key → plan
}

func (p *plans) limitFor(apiKey string) (hybrid.Limit, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	switch p.byID[apiKey] {
	case "pro":
		return hybrid.PerMinute(6000), true
	case "enterprise":
		return hybrid.PerMinute(60_000), true
	default:
		return hybrid.Limit{}, false // the limiter's own
	}
}

func perPlan(node *hybrid.Node, customers *plans, next http.Handler) (http.Handler, error) {
	api, err := node.Limiter("plan", hybrid.PerMinute(60), &hybrid.LimiterOptions{LimitFor: customers.limitFor})
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(api, &httplimit.Options{
		Key:     httplimit.Header("X-API-Key"),
		Headers: httplimit.IETF, // says "plan";q=6000;w=60 to a pro
	})
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}

func Example_perPlan() {
	customers := &plans{byID: map[string]string{"k1": "pro"}}
	runDoc(func(node *hybrid.Node, next http.Handler) (http.Handler, error) {
		return perPlan(node, customers, next)
	}, func(h http.Handler) {
		get(h, "203.0.113.9:1234", "/", []string{"X-API-Key: k1"}, "RateLimit", "RateLimit-Policy")
		get(h, "203.0.113.9:1234", "/", []string{"X-API-Key: k2"}, "RateLimit", "RateLimit-Policy")
	})
	// Output:
	// 200 RateLimit="plan";r=5999;t=60 RateLimit-Policy="plan";q=6000;w=60
	// 200 RateLimit="plan";r=59;t=59 RateLimit-Policy="plan";q=60;w=60
}

func perSecondAndDay(node *hybrid.Node, next http.Handler) (http.Handler, error) {
	second, err := node.Limiter("second", hybrid.PerSecond(10), nil)
	if err != nil {
		return nil, err
	}
	day, err := node.Limiter("day", hybrid.PerDay(10_000), nil)
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(second, &httplimit.Options{
		Key:  httplimit.Header("X-API-Key"),
		More: []httplimit.Check{{Limiter: day}}, // the same key; all are charged or none
	})
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}

func Example_perSecondAndDay() {
	runDoc(perSecondAndDay, func(h http.Handler) {
		// The tighter one is shown: 9 of 10 are left, and 9,999 of 10,000.
		get(h, "203.0.113.9:1234", "/", []string{"X-API-Key: k1"}, "X-Ratelimit-Limit", "X-Ratelimit-Remaining")
	})
	// Output:
	// 200 X-Ratelimit-Limit=10 X-Ratelimit-Remaining=9
}

func byCost(node *hybrid.Node, next http.Handler) (http.Handler, error) {
	rows, err := node.Limiter("rows", hybrid.PerHour(10_000), nil)
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(rows, &httplimit.Options{
		Key: httplimit.Header("X-API-Key"),
		// A page costs its rows. What is not understood costs most.
		Cost: func(r *http.Request) int64 {
			n, err := strconv.ParseInt(r.URL.Query().Get("rows"), 10, 64)
			if err != nil || n < 1 || n > 500 {
				return 500
			}
			return n
		},
	})
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}

func Example_byCost() {
	runDoc(byCost, func(h http.Handler) {
		get(h, "203.0.113.9:1234", "/?rows=100", []string{"X-API-Key: k1"}, "X-Ratelimit-Remaining")
		get(h, "203.0.113.9:1234", "/?rows=-7", []string{"X-API-Key: k2"}, "X-Ratelimit-Remaining")
	})
	// Output:
	// 200 X-Ratelimit-Remaining=9900
	// 200 X-Ratelimit-Remaining=9500
}

func loginRoute(node *hybrid.Node, login http.Handler) (http.Handler, error) {
	logins, err := node.Limiter("login", hybrid.PerMinute(5), &hybrid.LimiterOptions{
		Accuracy:  hybrid.Exact,      // each attempt asks Redis: never a sixth one
		OnFailure: hybrid.FailClosed, // and nobody guesses passwords while it is away: 503
	})
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(logins, &httplimit.Options{
		Key:     httplimit.ClientIP([]string{"10.0.0.0/8"}, nil),
		Headers: httplimit.NoHeaders, // but Retry-After
		Problem: true,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /login", limit(login))
	return mux, nil
}

func Example_loginRoute() {
	runDoc(loginRoute, func(h http.Handler) {
		for range 6 {
			post(h, "203.0.113.9:1234", "/login")
		}
	})
	// Output:
	// 200
	// 200
	// 200
	// 200
	// 200
	// 429 Retry-After=12
}

// The same route while Redis does not answer.
func Example_loginRouteWithoutRedis() {
	node, stop := newNodeWithoutRedis()
	defer stop()
	h, err := loginRoute(node, hello)
	if err != nil {
		panic(err)
	}
	post(h, "203.0.113.9:1234", "/login")
	// Output:
	// 503 Retry-After=1
}

func onTrial(node *hybrid.Node, log *slog.Logger, next http.Handler) (http.Handler, error) {
	visitors, err := node.Limiter("visitors", hybrid.PerHour(1000), nil)
	if err != nil {
		return nil, err
	}
	// What is planned: it decides and counts, and denies nobody.
	planned, err := node.Limiter("planned", hybrid.PerHour(100), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(visitors, &httplimit.Options{
		More: []httplimit.Check{{Limiter: planned}},
		Decided: func(r *http.Request, d httplimit.Decision) {
			switch {
			case d.Result.Shadowed: // it passes, and would not
				log.InfoContext(r.Context(), "would be denied", "limit", d.Name, "key", d.Key, "route", r.Pattern)
			case !d.Result.Allowed:
				log.InfoContext(r.Context(), "denied", "limit", d.Name, "key", d.Key, "status", d.Status)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}

func Example_onTrial() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	runDoc(func(node *hybrid.Node, next http.Handler) (http.Handler, error) {
		return onTrial(node, log, next)
	}, func(h http.Handler) {
		mux := http.NewServeMux()
		mux.Handle("GET /items/{id}", h)
		for range 100 { // as the planned limit allows
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/items/1", nil))
		}
		get(mux, "192.0.2.1:1234", "/items/2", nil)
	})
	// Output:
	// level=INFO msg="would be denied" limit=planned key=192.0.2.1 route="GET /items/{id}"
	// 200
}

// runDoc runs a snippet on a node of its own.
func runDoc(snippet func(*hybrid.Node, http.Handler) (http.Handler, error), show func(http.Handler)) {
	node, stop := newNode()
	defer stop()
	h, err := snippet(node, hello)
	if err != nil {
		panic(err)
	}
	show(h)
}

// A snippet that differs from what is compiled and run here is wrong, or soon
// will be.
func TestDocsAreTheseFunctions(t *testing.T) {
	page, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	snippets := 0
	for block := range strings.SplitSeq(string(page), "```go\n") {
		code, _, ok := strings.Cut(block, "```")
		if snippets++; !ok || snippets == 1 { // before the first one
			continue
		}
		if !strings.Contains(string(source), code) {
			t.Errorf("docs/http.md has a snippet that is not in docs_test.go:\n%s", code)
		}
	}
	if snippets < 8 {
		t.Errorf("%d snippets in docs/http.md", snippets-1)
	}
}
