package hybridfiber

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

func served(c fiber.Ctx) error { return c.SendString("served") }

// Routes of groups are routes like others. In a middleware of Use there is no route
// yet: requests are refused, and do not share a budget by accident.
func TestRoutesOfGroups(t *testing.T) {
	w := httpsuite.NewWorld(t)
	limit := limit(t, w.Limiter("routes", hybrid.PerHour(2)), &Options{Key: httplimit.Pattern()})
	app := fiber.New()
	app.Get("/items/:id", limit, served)
	app.Group("/v1").Get("/items/:id", limit, served)
	app.Group("/used", limit).Get("/items/:id", served)
	c := listen(t, app)
	c.Get("/items/1").Want(http.StatusOK, "X-RateLimit-Remaining", "1")
	c.Get("/v1/items/1").Want(http.StatusOK, "X-RateLimit-Remaining", "1")
	c.Get("/used/items/1").Want(http.StatusBadRequest)
	c.Get("/nowhere").Want(http.StatusNotFound, "X-RateLimit-Limit", "")
}

// A key outlives its request, whose memory the next one on the connection gets.
func TestKeysAreCopied(t *testing.T) {
	w := httpsuite.NewWorld(t)
	var denied []string
	app := fiber.New()
	app.Get("/", limit(t, w.Limiter("api", hybrid.PerHour(1)), &Options{
		Key: KeyFunc(func(c fiber.Ctx) (string, error) { return c.Get("X-User"), nil }),
		Deny: func(c fiber.Ctx, d httplimit.Decision) error {
			denied = append(denied, d.Key)
			return c.SendStatus(d.Status)
		},
	}), served)
	c := listen(t, app)
	users := []string{"ann", "bob", "eve"}
	for _, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
		for _, user := range users {
			c.Get("/", "X-User: "+user).Want(status)
		}
	}
	if got := strings.Join(denied, " "); got != "ann bob eve" {
		t.Errorf("denied %q", got)
	}
}

// Errors and panics of handlers reach Fiber's error handler and its recovery, with
// the limit's headers, and the request stays charged.
func TestErrorsAndPanics(t *testing.T) {
	w := httpsuite.NewWorld(t)
	app := fiber.New()
	app.Use(recover.New())
	app.Use(limit(t, w.Limiter("api", hybrid.PerHour(3)), nil))
	app.Get("/error", func(fiber.Ctx) error { return fiber.NewError(http.StatusConflict, "busy") })
	app.Get("/panic", func(fiber.Ctx) error { panic("oh") })
	c := listen(t, app)
	c.Get("/error").Want(http.StatusConflict, "X-RateLimit-Remaining", "2")
	c.Get("/panic").Want(http.StatusInternalServerError, "X-RateLimit-Remaining", "1")
	c.Get("/error").Want(http.StatusConflict, "X-RateLimit-Remaining", "0").WantBody("busy")
	c.Get("/error").Want(http.StatusTooManyRequests)
}

// A request that is out of time before it is decided is turned away.
func TestOutOfTime(t *testing.T) {
	w := httpsuite.NewWorld(t)
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		late, cancel := context.WithDeadline(c.Context(), time.Unix(1, 0))
		defer cancel()
		c.SetContext(late)
		return c.Next()
	})
	app.Get("/", limit(t, w.Limiter("api", hybrid.PerHour(1)), nil), served)
	listen(t, app).Get("/").Want(http.StatusServiceUnavailable, "Retry-After", "1", "X-RateLimit-Limit", "")
}

func TestMistakes(t *testing.T) {
	w := httpsuite.NewWorld(t)
	api := w.Limiter("api", hybrid.PerHour(1))
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
	w := httpsuite.NewWorld(t)
	limit, err := httplimit.New(w.Limiter("api", hybrid.PerHour(1)), &httplimit.Options{
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
