package httplimit_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// The client's own log of broken connections is what some examples are about.
func init() { logging.Disable() }

// newNode makes a node on an embedded Redis, for examples that run anywhere.
func newNode() (*hybrid.Node, func()) {
	store := miniredis.NewMiniRedis()
	if err := store.Start(); err != nil {
		panic(err)
	}
	// A second, so that the output does not depend on how busy the machine is.
	node, stop := nodeAt(store.Addr(), &hybrid.Options{StoreTimeout: time.Second})
	return node, func() {
		stop()
		store.Close()
	}
}

// newNodeWithoutRedis makes a node of which nobody answers the calls.
func newNodeWithoutRedis() (*hybrid.Node, func()) {
	return nodeAt("127.0.0.1:1", &hybrid.Options{Logger: slog.New(slog.DiscardHandler)})
}

func nodeAt(addr string, opts *hybrid.Options) (*hybrid.Node, func()) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
	node, err := hybrid.New(rdb, opts)
	if err != nil {
		panic(err)
	}
	return node, func() {
		_ = node.Close()
		_ = rdb.Close()
	}
}

// newLimiter makes a limiter that admits exactly its limit.
func newLimiter(node *hybrid.Node, name string, limit hybrid.Limit) *hybrid.Limiter {
	l, err := node.Limiter(name, limit, &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		panic(err)
	}
	return l
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })

// protect puts a limiter before hello.
func protect(l *hybrid.Limiter, opts *httplimit.Options) http.Handler {
	limit, err := httplimit.New(l, opts)
	if err != nil {
		panic(err)
	}
	return limit(hello)
}

// get sends a request from an address, with headers given as "Name: value", and
// prints the status and the response headers that are asked for.
func get(h http.Handler, from, url string, headers []string, show ...string) {
	send(h, http.MethodGet, from, url, headers, show)
}

// post prints Retry-After where there is one.
func post(h http.Handler, from, url string) {
	send(h, http.MethodPost, from, url, nil, []string{"Retry-After"})
}

func send(h http.Handler, method, from, url string, headers, show []string) {
	r := httptest.NewRequest(method, url, nil)
	r.RemoteAddr = from
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Print(w.Code)
	for _, name := range show {
		if value := w.Header().Get(name); value != "" {
			fmt.Printf(" %s=%s", name, value)
		}
	}
	fmt.Println()
}

func ExampleNew() {
	node, stop := newNode()
	defer stop()
	api, err := node.Limiter("api", hybrid.PerMinute(2), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(api, &httplimit.Options{Key: httplimit.Header("X-API-Key")})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	server := limit(mux) // for http.ListenAndServe

	for range 3 {
		get(server, "203.0.113.9:1234", "/hello", []string{"X-API-Key: k1"}, "X-Ratelimit-Remaining", "Retry-After")
	}
	get(server, "203.0.113.9:1234", "/hello", nil) // who is that?
	// Output:
	// 200 X-Ratelimit-Remaining=1
	// 200 X-Ratelimit-Remaining=0
	// 429 X-Ratelimit-Remaining=0 Retry-After=30
	// 400
}

// The fields of the IETF's draft, and a problem document.
func ExampleNew_ietf() {
	node, stop := newNode()
	defer stop()
	h := protect(newLimiter(node, "api", hybrid.PerMinute(1)), &httplimit.Options{Headers: httplimit.IETF, Problem: true})
	for range 2 {
		get(h, "203.0.113.9:1234", "/", nil, "RateLimit", "RateLimit-Policy", "Content-Type")
	}
	// Output:
	// 200 RateLimit="api";r=0;t=60 RateLimit-Policy="api";q=1;w=60 Content-Type=text/plain; charset=utf-8
	// 429 RateLimit="api";r=0;t=60 RateLimit-Policy="api";q=1;w=60 Content-Type=application/problem+json
}

// A limit that is only watched: nobody is refused, and the server counts who
// would have been.
func ExampleNew_shadow() {
	node, stop := newNode()
	defer stop()
	l, err := node.Limiter("api", hybrid.PerMinute(1), &hybrid.LimiterOptions{Accuracy: hybrid.Strict, Shadow: true})
	if err != nil {
		panic(err)
	}
	h := protect(l, &httplimit.Options{
		Headers: httplimit.NoHeaders,
		Decided: func(r *http.Request, d httplimit.Decision) {
			if d.Result.Shadowed {
				fmt.Println("would deny", r.URL.Path, "by limit", d.Name)
			}
		},
	})
	get(h, "203.0.113.9:1234", "/a", nil)
	get(h, "203.0.113.9:1234", "/b", nil)
	// Output:
	// 200
	// would deny /b by limit api
	// 200
}

func ExampleKeyFunc() {
	node, stop := newNode()
	defer stop()
	tenant := httplimit.KeyFunc(func(r *http.Request) (string, error) {
		name, _, ok := strings.Cut(r.Host, ".")
		if !ok {
			return "", fmt.Errorf("%q names no tenant", r.Host)
		}
		return name, nil
	})
	h := protect(newLimiter(node, "tenant", hybrid.PerHour(1)), &httplimit.Options{Key: tenant})
	for _, url := range []string{"http://acme.example/", "http://acme.example/", "http://other.example/", "http://localhost/"} {
		get(h, "203.0.113.9:1234", url, nil)
	}
	// Output:
	// 200
	// 429
	// 200
	// 400
}

func ExampleHeader() {
	node, stop := newNode()
	defer stop()
	h := protect(newLimiter(node, "api", hybrid.PerHour(1)), &httplimit.Options{
		Key:   httplimit.Header("X-API-Key"),
		NoKey: http.StatusUnauthorized,
	})
	get(h, "203.0.113.9:1234", "/", []string{"X-API-Key: k1"})
	get(h, "203.0.113.9:1234", "/", []string{"X-API-Key: k2"})
	get(h, "203.0.113.9:1234", "/", nil)
	get(h, "203.0.113.9:1234", "/", []string{"X-API-Key: k1", "X-API-Key: k3"})
	// Output:
	// 200
	// 200
	// 401
	// 401
}

func ExampleRemoteIP() {
	node, stop := newNode()
	defer stop()
	h := protect(newLimiter(node, "api", hybrid.PerHour(1)), &httplimit.Options{
		Key: httplimit.RemoteIP(&httplimit.IPOptions{IPv6Bits: 56}),
	})
	get(h, "[2001:db8:0:1::1]:1234", "/", nil)
	get(h, "[2001:db8:0:2::2]:1234", "/", nil) // of the same /56
	get(h, "203.0.113.9:1234", "/", nil)
	// Output:
	// 200
	// 429
	// 200
}

func ExampleClientIP() {
	node, stop := newNode()
	defer stop()
	h := protect(newLimiter(node, "api", hybrid.PerHour(1)), &httplimit.Options{
		Key: httplimit.ClientIP([]string{"10.0.0.0/8"}, nil), // the load balancers
	})
	get(h, "10.0.0.1:1234", "/", []string{"X-Forwarded-For: 203.0.113.9"})
	get(h, "10.0.0.1:1234", "/", []string{"X-Forwarded-For: 1.1.1.1, 203.0.113.9"}) // forged: the same client
	get(h, "10.0.0.1:1234", "/", []string{"X-Forwarded-For: 203.0.113.10"})
	get(h, "203.0.113.10:1234", "/", []string{"X-Forwarded-For: 1.1.1.1"}) // around the load balancer
	// Output:
	// 200
	// 429
	// 200
	// 429
}

func ExamplePattern() {
	node, stop := newNode()
	defer stop()
	limit, err := httplimit.New(newLimiter(node, "routes", hybrid.PerHour(1)), &httplimit.Options{Key: httplimit.Pattern()})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", limit(hello)) // inside of the mux
	mux.Handle("GET /users/{id}", limit(hello))
	get(mux, "203.0.113.9:1234", "/items/1", nil)
	get(mux, "203.0.113.9:1234", "/items/2", nil)
	get(mux, "203.0.113.9:1234", "/users/1", nil)
	// Output:
	// 200
	// 429
	// 200
}

// userKey is where an authenticating middleware leaves the user.
type userKey struct{}

func ExampleValue() {
	node, stop := newNode()
	defer stop()
	h := protect(newLimiter(node, "users", hybrid.PerHour(1)), &httplimit.Options{Key: httplimit.Value(userKey{})})
	authenticated := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, ok := r.BasicAuth(); ok {
			r = r.WithContext(context.WithValue(r.Context(), userKey{}, user))
		}
		h.ServeHTTP(w, r)
	})
	get(authenticated, "203.0.113.9:1234", "/", []string{"Authorization: Basic YW5uOnB3"}) // ann
	get(authenticated, "203.0.113.9:1234", "/", []string{"Authorization: Basic Ym9iOnB3"}) // bob
	get(authenticated, "203.0.113.9:1234", "/", nil)
	// Output:
	// 200
	// 200
	// 400
}

func ExampleFixed() {
	node, stop := newNode()
	defer stop()
	h := protect(newLimiter(node, "report", hybrid.PerHour(1)), &httplimit.Options{Key: httplimit.Fixed("everybody")})
	get(h, "203.0.113.9:1234", "/", nil)
	get(h, "203.0.113.10:1234", "/", nil)
	// Output:
	// 200
	// 429
}

func ExampleJoin() {
	node, stop := newNode()
	defer stop()
	limit, err := httplimit.New(newLimiter(node, "api", hybrid.PerHour(1)), &httplimit.Options{
		Key: httplimit.Join(httplimit.Header("X-API-Key"), httplimit.Pattern()),
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", limit(hello))
	mux.Handle("GET /users/{id}", limit(hello))
	get(mux, "203.0.113.9:1234", "/items/1", []string{"X-API-Key: k1"})
	get(mux, "203.0.113.9:1234", "/items/2", []string{"X-API-Key: k1"})
	get(mux, "203.0.113.9:1234", "/items/2", []string{"X-API-Key: k2"})
	get(mux, "203.0.113.9:1234", "/users/2", []string{"X-API-Key: k1"})
	// Output:
	// 200
	// 429
	// 200
	// 200
}

func ExampleDecision_RetryAfter() {
	node, stop := newNode()
	defer stop()
	h := protect(newLimiter(node, "api", hybrid.PerMinute(1)), &httplimit.Options{
		Deny: func(w http.ResponseWriter, _ *http.Request, d httplimit.Decision) {
			w.WriteHeader(d.Status)
			if s, ok := d.RetryAfter(); ok {
				fmt.Printf("come back in %d s\n", s)
			}
		},
	})
	get(h, "203.0.113.9:1234", "/", nil)
	get(h, "203.0.113.9:1234", "/", nil)
	// Output:
	// 200
	// come back in 60 s
	// 429
}
