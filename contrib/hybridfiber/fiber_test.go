package hybridfiber

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

func serve(c fiber.Ctx) error { return c.SendString(served) }

// limited is an app with a route behind a limit.
func limited(limit fiber.Handler) *fiber.App {
	app := fiber.New()
	app.Get("/items/:id", limit, serve)
	return app
}

// Requests pass up to the limit; the next one is answered, and nothing after the
// limit runs.
func TestPassesAndDenies(t *testing.T) {
	w := newWorld(t)
	var after, seen atomic.Int64
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error { // as a log does
		err := c.Next()
		seen.Store(int64(c.Response().StatusCode()))
		return err
	})
	app.Use(w.limit(w.limiter("api", hybrid.PerHour(2)), nil))
	app.Use(func(c fiber.Ctx) error { after.Add(1); return c.Next() })
	app.Get("/items/:id", serve)
	c := w.serve(app)
	for _, left := range []string{"1", "0"} {
		a := c.get("/items/1")
		c.want(a, http.StatusOK, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", left, "Retry-After", "")
		if a.body != served {
			t.Errorf("body %q", a.body)
		}
	}
	a := c.get("/items/1")
	c.want(a, http.StatusTooManyRequests, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0", "Cache-Control", "no-store",
		"Content-Type", "text/plain; charset=utf-8")
	c.wantRetry(a, 30*time.Minute)
	if a.body != "Too Many Requests\n" {
		t.Errorf("body %q", a.body)
	}
	if after.Load() != 2 || seen.Load() != http.StatusTooManyRequests {
		t.Errorf("what follows has run %d times, want 2; what precedes has seen the status %d", after.Load(), seen.Load())
	}
}

func TestSkipAndCost(t *testing.T) {
	w := newWorld(t)
	c := w.serve(limited(w.limit(w.limiter("api", hybrid.PerHour(10)), &Options{
		Skip: func(c fiber.Ctx) bool { return c.Get("X-Probe") != "" },
		Cost: func(c fiber.Ctx) int64 {
			n, _ := strconv.ParseInt(c.Params("id"), 10, 64)
			return n
		},
	})))
	c.want(c.get("/items/11", "X-Probe: yes"), http.StatusOK, "X-RateLimit-Limit", "")
	c.want(c.get("/items/0"), http.StatusOK, "X-RateLimit-Limit", "")
	c.want(c.get("/items/7"), http.StatusOK, "X-RateLimit-Remaining", "3")
	c.want(c.get("/items/4"), http.StatusTooManyRequests)
	c.want(c.get("/items/11"), http.StatusTooManyRequests, "Retry-After", "") // it can never pass
	c.want(c.get("/items/3"), http.StatusOK, "X-RateLimit-Remaining", "0")
	c.want(c.get("/items/-1"), http.StatusInternalServerError)
}

// Each route has a budget, whatever its paths are. In a middleware of Use there is
// no route yet: requests are refused, and do not share a budget by accident.
func TestRoutes(t *testing.T) {
	w := newWorld(t)
	limit := w.limit(w.limiter("routes", hybrid.PerHour(2)), &Options{Key: httplimit.Pattern()})
	app := limited(limit)
	app.Post("/items/:id", limit, serve)
	app.Group("/v1").Get("/items/:id", limit, serve)
	app.Group("/used", limit).Get("/items/:id", serve)
	c := w.serve(app)
	c.want(c.get("/items/1"), http.StatusOK)
	c.want(c.get("/items/2"), http.StatusOK)
	c.want(c.get("/items/3"), http.StatusTooManyRequests)
	c.want(c.send(http.MethodPost, "/items/1", ""), http.StatusOK, "X-RateLimit-Remaining", "1")
	c.want(c.get("/v1/items/1"), http.StatusOK, "X-RateLimit-Remaining", "1")
	c.want(c.get("/used/items/1"), http.StatusBadRequest)
	c.want(c.get("/nowhere"), http.StatusNotFound, "X-RateLimit-Limit", "")
}

type userKey struct{}

// The user is whoever an earlier middleware has left, in Fiber's Locals or in the
// request's context.
func TestUsers(t *testing.T) {
	w := newWorld(t)
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		if user := c.Get("X-User"); user != "" {
			c.Locals("user", user)
			c.SetContext(context.WithValue(c.Context(), userKey{}, strings.Clone(user)))
		}
		return c.Next()
	})
	l := w.limiter("users", hybrid.PerHour(1))
	app.Get("/locals", w.limit(l, &Options{Key: httplimit.Value("user")}), serve)
	app.Get("/context", w.limit(l, &Options{Key: httplimit.Value(userKey{})}), serve)
	c := w.serve(app)
	c.want(c.get("/locals", "X-User: ann"), http.StatusOK)
	c.want(c.get("/locals", "X-User: ann"), http.StatusTooManyRequests)
	c.want(c.get("/context", "X-User: ann"), http.StatusTooManyRequests)
	c.want(c.get("/context", "X-User: bob"), http.StatusOK)
	c.want(c.get("/locals"), http.StatusBadRequest)
	c.want(c.get("/context"), http.StatusBadRequest)
}

// The address is read as everywhere: from the connection, or from the right end of
// what trusted proxies have written, over all lines of the header.
func TestAddresses(t *testing.T) {
	w := newWorld(t)
	l := w.limiter("addresses", hybrid.PerHour(1))
	var counted string
	tell := func(c fiber.Ctx, d httplimit.Decision) error {
		counted = d.Key
		return c.SendStatus(d.Status)
	}
	app := fiber.New()
	app.Get("/peer", w.limit(l, &Options{Deny: tell}), serve)
	app.Get("/proxy", w.limit(l, &Options{Deny: tell, Key: httplimit.ClientIP([]string{"127.0.0.0/8"}, nil)}), serve)
	c := w.serve(app)
	for _, r := range []struct {
		path, want string
		lines      []string
	}{
		{"/peer", "127.0.0.1", []string{"X-Forwarded-For: 203.0.113.9"}},
		{"/proxy", "203.0.113.9", []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 2.2.2.2, 203.0.113.9"}},
		{"/proxy", "2001:db8:1:2::/64", []string{"X-Forwarded-For: 2001:db8:1:2::3"}},
	} {
		c.want(c.get(r.path, r.lines...), http.StatusOK)
		c.want(c.get(r.path, r.lines...), http.StatusTooManyRequests)
		if counted != r.want {
			t.Errorf("%s with %q was counted under %q, want %q", r.path, r.lines, counted, r.want)
		}
	}
}

// A key that fails refuses the request, and says why to the server alone.
func TestKeyFails(t *testing.T) {
	w := newWorld(t)
	secret := errors.New("session 42 has expired")
	var told error
	l := w.limiter("api", hybrid.PerHour(1))
	key := KeyFunc(func(fiber.Ctx) (string, error) { return "", secret })
	app := fiber.New()
	app.Get("/default", w.limit(l, &Options{Key: key, NoKey: http.StatusUnauthorized}), serve)
	app.Get("/twice", w.limit(l, &Options{Key: httplimit.Header("X-Key")}), serve)
	app.Get("/own", w.limit(l, &Options{Key: key, Failure: func(_ fiber.Ctx, err error) error {
		told = err
		return fiber.NewError(http.StatusTeapot, "who are you?")
	}}), serve)
	c := w.serve(app)
	a := c.get("/default")
	c.want(a, http.StatusUnauthorized, "X-RateLimit-Limit", "", "Retry-After", "")
	if a.body != "Unauthorized\n" {
		t.Errorf("body %q", a.body)
	}
	c.want(c.get("/twice", "X-Key: a", "X-Key: b"), http.StatusBadRequest)
	c.want(c.get("/twice"), http.StatusBadRequest)
	a = c.get("/own")
	c.want(a, http.StatusTeapot)
	if a.body != "who are you?" || !errors.Is(told, httplimit.ErrNoKey) || !errors.Is(told, secret) {
		t.Errorf("body %q, told %v", a.body, told)
	}
}

// A key outlives its request, whose memory the next one on the connection gets.
func TestKeysAreCopied(t *testing.T) {
	w := newWorld(t)
	var denied []string
	c := w.serve(limited(w.limit(w.limiter("api", hybrid.PerHour(1)), &Options{
		Key: KeyFunc(func(c fiber.Ctx) (string, error) { return c.Get("X-User"), nil }),
		Deny: func(c fiber.Ctx, d httplimit.Decision) error {
			denied = append(denied, d.Key)
			return c.SendStatus(d.Status)
		},
	})))
	users := []string{"ann", "bob", "eve"}
	for _, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
		for _, user := range users {
			c.want(c.get("/items/1", "X-User: "+user), status)
		}
	}
	if got := strings.Join(denied, " "); got != "ann bob eve" {
		t.Errorf("denied %q", got)
	}
}

// A limit that is FailClosed turns requests away while Redis does not answer.
func TestRedisIsDown(t *testing.T) {
	w := newWorld(t)
	app := fiber.New()
	for name, policy := range map[string]hybrid.FailurePolicy{"closed": hybrid.FailClosed, "open": hybrid.FailOpen} {
		app.Get("/"+name, w.limit(w.limiterWith(name, hybrid.PerHour(1), hybrid.LimiterOptions{OnFailure: policy}), &Options{Problem: true}), serve)
	}
	c := w.serve(app)
	w.mini.SetError("LOADING Redis is loading the dataset in memory")
	for range 3 {
		c.want(c.get("/closed"), http.StatusServiceUnavailable, "Retry-After", "1", "X-RateLimit-Limit", "1", "Content-Type", "application/problem+json")
		c.want(c.get("/open"), http.StatusOK, "Retry-After", "")
	}
}

// What is watched in shadow mode passes; the server is told.
func TestShadow(t *testing.T) {
	w := newWorld(t)
	var told []string
	shadow := w.limiterWith("api", hybrid.PerHour(1), hybrid.LimiterOptions{Shadow: true})
	c := w.serve(limited(w.limit(shadow, &Options{Decided: func(c fiber.Ctx, d httplimit.Decision) {
		if d.Result.Shadowed {
			told = append(told, d.Name+" "+strings.Clone(c.Params("id")))
		}
	}})))
	for _, path := range []string{"/items/1", "/items/2", "/items/3"} {
		c.want(c.get(path), http.StatusOK, "Retry-After", "")
	}
	if got := strings.Join(told, ", "); got != "api 2, api 3" {
		t.Errorf("told of %q", got)
	}
}

// Errors and panics of handlers reach Fiber's error handler and its recovery, with
// the limit's headers, and the request stays charged.
func TestErrorsAndPanics(t *testing.T) {
	w := newWorld(t)
	app := fiber.New()
	app.Use(recover.New())
	app.Use(w.limit(w.limiter("api", hybrid.PerHour(3)), nil))
	app.Get("/error", func(fiber.Ctx) error { return fiber.NewError(http.StatusConflict, "busy") })
	app.Get("/panic", func(fiber.Ctx) error { panic("oh") })
	c := w.serve(app)
	c.want(c.get("/error"), http.StatusConflict, "X-RateLimit-Remaining", "2")
	c.want(c.get("/panic"), http.StatusInternalServerError, "X-RateLimit-Remaining", "1")
	a := c.get("/error")
	c.want(a, http.StatusConflict, "X-RateLimit-Remaining", "0")
	if a.body != "busy" {
		t.Errorf("body %q", a.body)
	}
	c.want(c.get("/error"), http.StatusTooManyRequests)
}

// Of several limits of one size the one that denies is named, and the others are
// not charged.
func TestSeveralLimits(t *testing.T) {
	w := newWorld(t)
	user, tenant := w.limiter("user", hybrid.PerHour(2)), w.limiter("tenant", hybrid.PerHour(2))
	c := w.serve(limited(w.limit(user, &Options{
		Key:     httplimit.Header("X-User"),
		Headers: httplimit.IETF,
		More: []Check{{Limiter: tenant, Key: httplimit.Header("X-Tenant"), Cost: func(c fiber.Ctx) int64 {
			if c.Get("X-Tenant") == "free" {
				return 0
			}
			return 1
		}}},
		Deny: func(c fiber.Ctx, d httplimit.Decision) error { return fiber.NewError(d.Status, d.Name) },
	})))
	c.want(c.get("/items/1", "X-User: ann", "X-Tenant: acme"), http.StatusOK)
	c.want(c.get("/items/1", "X-User: bob", "X-Tenant: acme"), http.StatusOK)
	for range 3 {
		a := c.get("/items/1", "X-User: ann", "X-Tenant: acme")
		c.want(a, http.StatusTooManyRequests, "RateLimit-Policy", `"tenant";q=2;w=3600`)
		if a.body != "tenant" {
			t.Errorf("body %q", a.body)
		}
	}
	c.want(c.get("/items/1", "X-User: ann", "X-Tenant: free"), http.StatusOK, "RateLimit-Policy", `"user";q=2;w=3600`)
	c.want(c.get("/items/1", "X-User: ann", "X-Tenant: other"), http.StatusTooManyRequests, "RateLimit-Policy", `"user";q=2;w=3600`)
}

// A request that is out of time before it is decided is turned away.
func TestOutOfTime(t *testing.T) {
	w := newWorld(t)
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		late, cancel := context.WithDeadline(c.Context(), time.Unix(1, 0))
		defer cancel()
		c.SetContext(late)
		return c.Next()
	})
	app.Get("/", w.limit(w.limiterWith("api", hybrid.PerHour(1), hybrid.LimiterOptions{}), nil), serve)
	c := w.serve(app)
	c.want(c.get("/"), http.StatusServiceUnavailable, "Retry-After", "1", "X-RateLimit-Limit", "")
}

func TestMistakes(t *testing.T) {
	w := newWorld(t)
	api := w.limiter("api", hybrid.PerHour(1))
	native := httplimit.KeyFunc(func(*http.Request) (string, error) { return "k", nil })
	for _, c := range []struct {
		limiter *hybrid.Limiter
		opts    *Options
		says    string
	}{
		{nil, nil, "limiter"},
		{api, &Options{NoKey: 200}, "Options.NoKey"},
		{api, &Options{More: []Check{{}}}, "Options.More[0]"},
		{api, &Options{Key: KeyFunc(nil)}, "nil"},
		{api, &Options{Key: native}, "Options.Key"},
	} {
		limit, err := New(c.limiter, c.opts)
		if limit != nil || !errors.Is(err, hybrid.ErrInvalidOption) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want an ErrInvalidOption that says %q", c.opts, err, c.says)
		}
	}
}

// A key of Fiber's context finds nothing in a request of another server.
func TestKeyOfAnotherServer(t *testing.T) {
	w := newWorld(t)
	limit, err := httplimit.New(w.limiter("api", hybrid.PerHour(1)), &httplimit.Options{
		Key: KeyFunc(func(fiber.Ctx) (string, error) { return "k", nil }),
		Failure: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, errNotFiber) {
				t.Errorf("told %v", err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	limit(http.NotFoundHandler()).ServeHTTP(nil, &http.Request{})
}
