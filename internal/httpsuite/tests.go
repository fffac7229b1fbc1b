package httpsuite

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// tests need to know no route; testsOfRoutes do.
var (
	tests = map[string]func(*suite){
		"PassesAndDenies": (*suite).passesAndDenies,
		"CostFromTheBody": (*suite).costFromTheBody,
		"Users":           (*suite).users,
		"Addresses":       (*suite).addresses,
		"KeyFails":        (*suite).keyFails,
		"RedisIsDown":     (*suite).redisIsDown,
		"SeveralLimits":   (*suite).severalLimits,
	}
	testsOfRoutes = map[string]func(*suite){
		"SkipAndCost": (*suite).skipAndCost,
		"Routes":      (*suite).routes,
		"Shadow":      (*suite).shadow,
	}
)

// Requests pass up to the limit; the next one is answered, and nothing inside of
// the limit runs.
func (s *suite) passesAndDenies() {
	var inside, logged atomic.Int64
	c := s.serve(App{
		Limiter: s.Limiter("api", hybrid.PerHour(2)),
		Log:     func(status int) { logged.Store(int64(status)) },
		Inside:  func() { inside.Add(1) },
	})
	for _, left := range []string{"1", "0"} {
		c.Get("/items/1").Want(http.StatusOK, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", left, "Retry-After", "").WantBody("served")
	}
	denied := c.Get("/items/1")
	denied.Want(http.StatusTooManyRequests, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0",
		"Cache-Control", "no-store", "Content-Type", "text/plain; charset=utf-8").WantBody("Too Many Requests\n")
	denied.wantRetry(30 * time.Minute)
	if inside.Load() != 2 || logged.Load() != http.StatusTooManyRequests {
		s.t.Errorf("what is inside has run %d times, want 2; what is outside has seen the status %d", inside.Load(), logged.Load())
	}
}

func (s *suite) skipAndCost() {
	c := s.limit(s.Limiter("api", hybrid.PerHour(10)), &httplimit.Options{
		Skip: func(r *http.Request) bool { return r.Header.Get("X-Probe") != "" },
		Cost: func(r *http.Request) int64 { return number(s.Param(r, "id")) },
	})
	c.Get("/items/11", "X-Probe: yes").Want(http.StatusOK, "X-RateLimit-Limit", "")
	c.Get("/items/0").Want(http.StatusOK, "X-RateLimit-Limit", "")
	c.Get("/items/7").Want(http.StatusOK, "X-RateLimit-Remaining", "3")
	c.Get("/items/4").Want(http.StatusTooManyRequests)
	c.Get("/items/11").Want(http.StatusTooManyRequests, "Retry-After", "") // it can never pass
	c.Get("/items/3").Want(http.StatusOK, "X-RateLimit-Remaining", "0")
	c.Get("/items/-1").Want(http.StatusInternalServerError)
}

// A cost that is read from the body leaves the body's values to the handler.
func (s *suite) costFromTheBody() {
	c := s.limit(s.Limiter("api", hybrid.PerHour(10)), &httplimit.Options{
		Cost: func(r *http.Request) int64 { return number(r.PostFormValue("rows")) },
	})
	c.Send(http.MethodPost, "/items/1", "rows=7", "Content-Type: application/x-www-form-urlencoded").
		Want(http.StatusOK, "X-RateLimit-Remaining", "3").WantBody("served7")
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Each route has a budget, whatever its paths are.
func (s *suite) routes() {
	c := s.limit(s.Limiter("routes", hybrid.PerHour(2)), &httplimit.Options{Key: s.ByRoute})
	c.Get("/items/1").Want(http.StatusOK, "X-RateLimit-Limit", "2")
	c.Get("/items/2").Want(http.StatusOK, "X-RateLimit-Limit", "2")
	c.Get("/items/3").Want(http.StatusTooManyRequests, "X-RateLimit-Limit", "2")
	c.Send(http.MethodPost, "/items/1", "").Want(http.StatusOK, "X-RateLimit-Remaining", "1")
	c.Get("/users/1").Want(http.StatusOK, "X-RateLimit-Remaining", "1")
}

// The user is whoever an earlier middleware has left, among the framework's values
// or in the request's context.
func (s *suite) users() {
	l := s.Limiter("users", hybrid.PerHour(1))
	own := s.limit(l, &httplimit.Options{Key: httplimit.Value("user")})
	context := s.limit(l, &httplimit.Options{Key: httplimit.Value(userKey{})})
	own.Get("/items/1", "X-User: ann").Want(http.StatusOK)
	own.Get("/items/1", "X-User: ann").Want(http.StatusTooManyRequests)
	context.Get("/items/1", "X-User: ann").Want(http.StatusTooManyRequests)
	context.Get("/items/1", "X-User: bob").Want(http.StatusOK)
	own.Get("/items/1").Want(http.StatusBadRequest)
	context.Get("/items/1").Want(http.StatusBadRequest)
}

// The address is read as everywhere: from the connection, or from the right end of
// what trusted proxies have written, over all lines of the header.
func (s *suite) addresses() {
	l := s.Limiter("addresses", hybrid.PerHour(1))
	var counted string
	tell := func(w http.ResponseWriter, r *http.Request, d httplimit.Decision) {
		counted = d.Key
		s.Refuse(w, r, d.Status, "")
	}
	peer := s.limit(l, &httplimit.Options{Deny: tell})
	proxy := s.limit(l, &httplimit.Options{Deny: tell, Key: httplimit.ClientIP([]string{"127.0.0.0/8"}, nil)})
	for _, r := range []struct {
		c     *Client
		lines []string
		want  string
	}{
		{peer, []string{"X-Forwarded-For: 203.0.113.9"}, "127.0.0.1"},
		{proxy, []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 2.2.2.2, 203.0.113.9"}, "203.0.113.9"},
		{proxy, []string{"X-Forwarded-For: 2001:db8:1:2::3"}, "2001:db8:1:2::/64"},
	} {
		r.c.Get("/items/1", r.lines...).Want(http.StatusOK)
		r.c.Get("/items/1", r.lines...).Want(http.StatusTooManyRequests)
		if counted != r.want {
			s.t.Errorf("%q was counted under %q, want %q", r.lines, counted, r.want)
		}
	}
}

// A request without a key is refused; why is said to the server alone.
func (s *suite) keyFails() {
	l := s.Limiter("api", hybrid.PerHour(1))
	secret := errors.New("session 42 has expired")
	fails := s.KeyFunc(func(*http.Request) (string, error) { return "", secret })
	var told error
	unknown := s.limit(l, &httplimit.Options{Key: fails, NoKey: http.StatusUnauthorized})
	own := s.limit(l, &httplimit.Options{Key: fails, Failure: func(w http.ResponseWriter, r *http.Request, err error) {
		told = err
		s.Refuse(w, r, http.StatusTeapot, "who are you?")
	}})
	named := s.limit(l, &httplimit.Options{Key: httplimit.Header("X-Key")})
	unknown.Get("/items/1").Want(http.StatusUnauthorized, "X-RateLimit-Limit", "", "Retry-After", "").WantBody("Unauthorized\n")
	own.Get("/items/1").Want(http.StatusTeapot).WantBody(fmt.Sprintf(s.Refusal, "who are you?"))
	if !errors.Is(told, httplimit.ErrNoKey) || !errors.Is(told, secret) {
		s.t.Errorf("told %v", told)
	}
	named.Get("/items/1").Want(http.StatusBadRequest)
	named.Get("/items/1", "X-Key: a", "X-Key: b").Want(http.StatusBadRequest)
}

// A limit that is FailClosed turns requests away while Redis does not answer.
func (s *suite) redisIsDown() {
	closed := s.limiter("closed", hybrid.PerHour(1), hybrid.LimiterOptions{OnFailure: hybrid.FailClosed})
	text, problem := s.limit(closed, nil), s.limit(closed, &httplimit.Options{Problem: true})
	open := s.limit(s.limiter("open", hybrid.PerHour(1), hybrid.LimiterOptions{OnFailure: hybrid.FailOpen}), nil)
	s.breakRedis()
	for range 3 {
		text.Get("/items/1").Want(http.StatusServiceUnavailable, "Retry-After", "1", "X-RateLimit-Limit", "1", "Content-Type", "text/plain; charset=utf-8")
		problem.Get("/items/1").Want(http.StatusServiceUnavailable, "Retry-After", "1", "X-RateLimit-Limit", "1", "Content-Type", "application/problem+json")
		open.Get("/items/1").Want(http.StatusOK, "Retry-After", "")
	}
}

// What is watched in shadow mode passes; the server is told.
func (s *suite) shadow() {
	var told []string
	c := s.limit(s.limiter("api", hybrid.PerHour(1), hybrid.LimiterOptions{Shadow: true}), &httplimit.Options{
		Decided: func(r *http.Request, d httplimit.Decision) {
			if d.Result.Shadowed {
				told = append(told, d.Name+" "+s.Param(r, "id"))
			}
		},
	})
	for _, path := range []string{"/items/1", "/items/2", "/items/3"} {
		c.Get(path).Want(http.StatusOK, "Retry-After", "")
	}
	if got := strings.Join(told, ", "); got != "api 2, api 3" {
		s.t.Errorf("told of %q", got)
	}
}

// Of several limits of one size the one that denies is named, and the others are
// not charged. What is free of one limit is charged to the others.
func (s *suite) severalLimits() {
	user, tenant := s.Limiter("user", hybrid.PerHour(3)), s.Limiter("tenant", hybrid.PerHour(3))
	c := s.limit(user, &httplimit.Options{
		Key:     httplimit.Header("X-User"),
		Headers: httplimit.IETF,
		More: []httplimit.Check{{Limiter: tenant, Key: httplimit.Header("X-Tenant"), Cost: func(r *http.Request) int64 {
			if r.Header.Get("X-Tenant") == "free" {
				return 0
			}
			return 1
		}}},
		Deny: func(w http.ResponseWriter, r *http.Request, d httplimit.Decision) { s.Refuse(w, r, d.Status, d.Name) },
	})
	for _, name := range []string{"ann", "bob", "bob"} {
		c.Get("/items/1", "X-User: "+name, "X-Tenant: acme").Want(http.StatusOK)
	}
	for range 3 {
		c.Get("/items/1", "X-User: ann", "X-Tenant: acme").
			Want(http.StatusTooManyRequests, "RateLimit-Policy", `"tenant";q=3;w=3600`).WantBody(fmt.Sprintf(s.Refusal, "tenant"))
	}
	c.Get("/items/1", "X-User: ann", "X-Tenant: other").Want(http.StatusOK, "RateLimit-Policy", `"user";q=3;w=3600`)
	for _, name := range []string{"ann", "eve", "eve", "eve"} {
		c.Get("/items/1", "X-User: "+name, "X-Tenant: free").Want(http.StatusOK, "RateLimit-Policy", `"user";q=3;w=3600`)
	}
	c.Get("/items/1", "X-User: ann", "X-Tenant: other").Want(http.StatusTooManyRequests, "RateLimit-Policy", `"user";q=3;w=3600`)
}
