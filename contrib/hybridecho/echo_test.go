package hybridecho

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

// What no route matches shares a budget, which is none of a route.
func TestNoRoute(t *testing.T) {
	w := httpsuite.NewWorld(t)
	e := echo.New()
	e.Use(limit(t, w.Limiter("routes", hybrid.PerHour(2)), &httplimit.Options{Key: httplimit.Pattern()}))
	e.GET("/items/:id", func(echo.Context) error { return nil })
	c := httpsuite.Listen(t, e)
	c.Get("/items/1").Want(http.StatusOK, "X-RateLimit-Remaining", "1")
	c.Get("/nowhere").Want(http.StatusNotFound, "X-RateLimit-Remaining", "1")
	c.Get("/elsewhere").Want(http.StatusNotFound, "X-RateLimit-Remaining", "0")
	c.Get("/anywhere").Want(http.StatusTooManyRequests)
}

// Errors and panics of handlers reach Echo's error handler and its recovery, with
// the limit's headers, and the request stays charged.
func TestErrorsAndPanics(t *testing.T) {
	w := httpsuite.NewWorld(t)
	var handled []string
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		handled = append(handled, err.Error())
		e.DefaultHTTPErrorHandler(err, c)
	}
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: func(_ echo.Context, err error, _ []byte) error { return err }}))
	e.Use(limit(t, w.Limiter("api", hybrid.PerHour(3)), nil))
	e.GET("/error", func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "busy") })
	e.GET("/panic", func(echo.Context) error { panic("oh") })
	c := httpsuite.Listen(t, e)
	c.Get("/error").Want(http.StatusConflict, "X-RateLimit-Remaining", "2")
	c.Get("/panic").Want(http.StatusInternalServerError, "X-RateLimit-Remaining", "1")
	c.Get("/error").Want(http.StatusConflict, "X-RateLimit-Remaining", "0")
	c.Get("/error").Want(http.StatusTooManyRequests)
	if got := strings.Join(handled, "; "); got != "code=409, message=busy; oh; code=409, message=busy" {
		t.Errorf("handled %q", got)
	}
}

// Handlers get the request's own context, which somebody may keep.
func TestHandlersGetTheirOwnContext(t *testing.T) {
	w := httpsuite.NewWorld(t)
	e := echo.New()
	e.GET("/", func(c echo.Context) error {
		if _, ok := c.Request().Context().(*call); ok || Context(c.Request()) != nil {
			t.Error("the handler has the context of the decision")
		}
		return nil
	}, limit(t, w.Limiter("api", hybrid.PerHour(1)), nil))
	httpsuite.Listen(t, e).Get("/").Want(http.StatusOK)
	other := httptest.NewRequest(http.MethodGet, "/", nil)
	if Fail(other, errors.New("nobody hears of this")); Context(other) != nil {
		t.Error("a request of another server has a context of Echo")
	}
}

func TestMistakes(t *testing.T) {
	w := httpsuite.NewWorld(t)
	if limit, err := New(nil, nil); limit != nil || !errors.Is(err, hybrid.ErrInvalidOption) {
		t.Errorf("without a limiter: %v, want an ErrInvalidOption", err)
	}
	if limit, err := New(w.Limiter("api", hybrid.PerHour(1)), &httplimit.Options{NoKey: 200}); limit != nil || !errors.Is(err, hybrid.ErrInvalidOption) {
		t.Errorf("with a wrong option: %v, want an ErrInvalidOption", err)
	}
}
