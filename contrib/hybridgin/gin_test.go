package hybridgin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

func serve(c *gin.Context) { c.String(http.StatusOK, served) }

// limited is an engine whose routes are all behind a limit.
func limited(limit gin.HandlerFunc) *gin.Engine {
	e := gin.New()
	e.Use(limit)
	e.GET("/items/:id", serve)
	return e
}

// Requests pass up to the limit; the next one is answered, and nothing after the
// limit runs.
func TestPassesAndDenies(t *testing.T) {
	w := newWorld(t)
	var after, seen atomic.Int64
	e := gin.New()
	e.Use(func(c *gin.Context) { // as a log does
		c.Next()
		seen.Store(int64(c.Writer.Status()))
	})
	e.Use(w.limit(w.limiter("api", hybrid.PerHour(2)), nil))
	e.Use(func(*gin.Context) { after.Add(1) })
	e.GET("/items/:id", serve)
	c := w.serve(e)
	for _, left := range []string{"1", "0"} {
		a := c.get("/items/1")
		c.want(a, http.StatusOK, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", left, "Retry-After", "")
		if a.body != served {
			t.Errorf("body %q", a.body)
		}
	}
	a := c.get("/items/1")
	c.want(a, http.StatusTooManyRequests, "X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0", "Cache-Control", "no-store")
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
	c := w.serve(limited(w.limit(w.limiter("api", hybrid.PerHour(10)), &httplimit.Options{
		Skip: func(r *http.Request) bool { return r.Header.Get("X-Probe") != "" },
		Cost: func(r *http.Request) int64 {
			n, _ := strconv.ParseInt(Context(r).Param("id"), 10, 64)
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

// Each route has a budget, whatever its paths are; what no route matches shares one.
func TestRoutes(t *testing.T) {
	w := newWorld(t)
	e := limited(w.limit(w.limiter("routes", hybrid.PerHour(2)), &httplimit.Options{Key: httplimit.Pattern()}))
	e.POST("/items/:id", serve)
	c := w.serve(e)
	c.want(c.get("/items/1"), http.StatusOK)
	c.want(c.get("/items/2"), http.StatusOK)
	c.want(c.get("/items/3"), http.StatusTooManyRequests)
	c.want(c.send(http.MethodPost, "/items/1", ""), http.StatusOK, "X-RateLimit-Remaining", "1")
	c.want(c.get("/nowhere"), http.StatusNotFound, "X-RateLimit-Remaining", "1")
	c.want(c.get("/elsewhere"), http.StatusNotFound, "X-RateLimit-Remaining", "0")
	c.want(c.get("/anywhere"), http.StatusTooManyRequests)
}

type userKey struct{}

// The user is whoever an earlier middleware has left, in Gin's context or in the
// request's.
func TestUsers(t *testing.T) {
	w := newWorld(t)
	e := gin.New()
	e.ContextWithFallback = true // Gin's context looks in the request's, which must not look back
	e.Use(func(c *gin.Context) {
		if user := c.GetHeader("X-User"); user != "" {
			c.Set("user", user)
			c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), userKey{}, user))
		}
	})
	l := w.limiter("users", hybrid.PerHour(1))
	e.GET("/set", w.limit(l, &httplimit.Options{Key: httplimit.Value("user")}), serve)
	e.GET("/context", w.limit(l, &httplimit.Options{Key: httplimit.Value(userKey{})}), serve)
	c := w.serve(e)
	c.want(c.get("/set", "X-User: ann"), http.StatusOK)
	c.want(c.get("/set", "X-User: ann"), http.StatusTooManyRequests)
	c.want(c.get("/context", "X-User: ann"), http.StatusTooManyRequests)
	c.want(c.get("/context", "X-User: bob"), http.StatusOK)
	c.want(c.get("/set"), http.StatusBadRequest)
	c.want(c.get("/context"), http.StatusBadRequest)
}

// A key that fails refuses the request, and says why to the server alone.
func TestKeyFails(t *testing.T) {
	w := newWorld(t)
	secret := errors.New("session 42 has expired")
	var told error
	l := w.limiter("api", hybrid.PerHour(1))
	key := httplimit.KeyFunc(func(*http.Request) (string, error) { return "", secret })
	e := gin.New()
	e.GET("/default", w.limit(l, &httplimit.Options{Key: key, NoKey: http.StatusUnauthorized}), serve)
	e.GET("/own", w.limit(l, &httplimit.Options{Key: key, Failure: func(_ http.ResponseWriter, r *http.Request, err error) {
		told = err
		Context(r).AbortWithStatusJSON(http.StatusTeapot, gin.H{"error": "who are you?"})
	}}), serve)
	c := w.serve(e)
	a := c.get("/default")
	c.want(a, http.StatusUnauthorized, "X-RateLimit-Limit", "", "Retry-After", "")
	if a.body != "Unauthorized\n" {
		t.Errorf("body %q", a.body)
	}
	a = c.get("/own")
	c.want(a, http.StatusTeapot)
	if a.body != `{"error":"who are you?"}` || !errors.Is(told, httplimit.ErrNoKey) || !errors.Is(told, secret) {
		t.Errorf("body %q, told %v", a.body, told)
	}
}

// A limit that is FailClosed turns requests away while Redis does not answer.
func TestRedisIsDown(t *testing.T) {
	w := newWorld(t)
	e := gin.New()
	for name, policy := range map[string]hybrid.FailurePolicy{"closed": hybrid.FailClosed, "open": hybrid.FailOpen} {
		e.GET("/"+name, w.limit(w.limiterWith(name, hybrid.PerHour(1), hybrid.LimiterOptions{OnFailure: policy}), nil), serve)
	}
	c := w.serve(e)
	w.mini.SetError("LOADING Redis is loading the dataset in memory")
	for range 3 {
		c.want(c.get("/closed"), http.StatusServiceUnavailable, "Retry-After", "1", "X-RateLimit-Limit", "1")
		c.want(c.get("/open"), http.StatusOK, "Retry-After", "")
	}
}

// What is watched in shadow mode passes; the server is told.
func TestShadow(t *testing.T) {
	w := newWorld(t)
	var told []string
	shadow := w.limiterWith("api", hybrid.PerHour(1), hybrid.LimiterOptions{Shadow: true})
	c := w.serve(limited(w.limit(shadow, &httplimit.Options{Decided: func(r *http.Request, d httplimit.Decision) {
		if d.Result.Shadowed {
			told = append(told, d.Name+" "+Context(r).Param("id"))
		}
	}})))
	for _, path := range []string{"/items/1", "/items/2", "/items/3"} {
		c.want(c.get(path), http.StatusOK, "Retry-After", "")
	}
	if got := strings.Join(told, ", "); got != "api 2, api 3" {
		t.Errorf("told of %q", got)
	}
}

// A panic of a handler reaches Gin's recovery, and the request stays charged.
func TestPanics(t *testing.T) {
	w := newWorld(t)
	e := gin.New()
	e.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, err any) {
		c.String(http.StatusInternalServerError, "recovered %v", err)
	}))
	e.Use(w.limit(w.limiter("api", hybrid.PerHour(2)), nil))
	e.GET("/", func(*gin.Context) { panic("oh") })
	c := w.serve(e)
	for _, left := range []string{"1", "0"} {
		a := c.get("/")
		c.want(a, http.StatusInternalServerError, "X-RateLimit-Remaining", left)
		if a.body != "recovered oh" {
			t.Errorf("body %q", a.body)
		}
	}
	c.want(c.get("/"), http.StatusTooManyRequests)
}

// Of several limits of one size the one that denies is named, and the others are
// not charged.
func TestSeveralLimits(t *testing.T) {
	w := newWorld(t)
	user, tenant := w.limiter("user", hybrid.PerHour(2)), w.limiter("tenant", hybrid.PerHour(2))
	c := w.serve(limited(w.limit(user, &httplimit.Options{
		Key:     httplimit.Header("X-User"),
		Headers: httplimit.IETF,
		More:    []httplimit.Check{{Limiter: tenant, Key: httplimit.Header("X-Tenant")}},
		Deny: func(_ http.ResponseWriter, r *http.Request, d httplimit.Decision) {
			Context(r).AbortWithStatusJSON(d.Status, gin.H{"limit": d.Name})
		},
	})))
	c.want(c.get("/items/1", "X-User: ann", "X-Tenant: acme"), http.StatusOK)
	c.want(c.get("/items/1", "X-User: bob", "X-Tenant: acme"), http.StatusOK)
	for range 3 {
		a := c.get("/items/1", "X-User: ann", "X-Tenant: acme")
		c.want(a, http.StatusTooManyRequests, "RateLimit-Policy", `"tenant";q=2;w=3600`)
		if a.body != `{"limit":"tenant"}` {
			t.Errorf("body %q", a.body)
		}
	}
	c.want(c.get("/items/1", "X-User: ann", "X-Tenant: other"), http.StatusOK, "RateLimit-Policy", `"user";q=2;w=3600`)
	c.want(c.get("/items/1", "X-User: ann", "X-Tenant: other"), http.StatusTooManyRequests, "RateLimit-Policy", `"user";q=2;w=3600`)
}

// A cost that is read from the body leaves the body's values to the handler.
func TestCostFromTheBody(t *testing.T) {
	w := newWorld(t)
	e := gin.New()
	limit := w.limit(w.limiter("api", hybrid.PerHour(10)), &httplimit.Options{Cost: func(r *http.Request) int64 {
		n, _ := strconv.ParseInt(r.PostFormValue("rows"), 10, 64)
		return n
	}})
	e.POST("/", limit, func(c *gin.Context) { c.String(http.StatusOK, c.PostForm("rows")) })
	c := w.serve(e)
	a := c.send(http.MethodPost, "/", "rows=7", "Content-Type: application/x-www-form-urlencoded")
	c.want(a, http.StatusOK, "X-RateLimit-Remaining", "3")
	if a.body != "7" {
		t.Errorf("the handler has read %q rows, want 7", a.body)
	}
}

// Handlers get the request's own context, which somebody may keep.
func TestHandlersGetTheirOwnContext(t *testing.T) {
	w := newWorld(t)
	e := gin.New()
	e.GET("/", w.limit(w.limiter("api", hybrid.PerHour(1)), nil), func(c *gin.Context) {
		if _, ok := c.Request.Context().(*call); ok || Context(c.Request) != nil {
			t.Error("the handler has the context of the decision")
		}
	})
	c := w.serve(e)
	c.want(c.get("/"), http.StatusOK)
	if Context(httptest.NewRequest(http.MethodGet, "/", nil)) != nil {
		t.Error("a request of another server has a context of Gin")
	}
}

func TestMistakes(t *testing.T) {
	w := newWorld(t)
	if limit, err := New(nil, nil); limit != nil || !errors.Is(err, hybrid.ErrInvalidOption) {
		t.Errorf("without a limiter: %v, want an ErrInvalidOption", err)
	}
	if limit, err := New(w.limiter("api", hybrid.PerHour(1)), &httplimit.Options{NoKey: 200}); limit != nil || !errors.Is(err, hybrid.ErrInvalidOption) {
		t.Errorf("with a wrong option: %v, want an ErrInvalidOption", err)
	}
}
