package hybridecho

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

func TestSuite(t *testing.T) {
	httpsuite.Run(t, httpsuite.Framework{
		Serve:   serve,
		Param:   func(r *http.Request, name string) string { return Context(r).Param(name) },
		KeyFunc: httplimit.KeyFunc,
		ByRoute: httplimit.Pattern(),
		Refuse: func(_ http.ResponseWriter, r *http.Request, status int, message string) {
			Fail(r, echo.NewHTTPError(status, message)) // which Echo's error handler words
		},
		Refusal: "{\"message\":\"%s\"}\n",
	})
}

func serve(t *testing.T, app httpsuite.App) *httpsuite.Client {
	t.Helper()
	chain := []echo.MiddlewareFunc{limit(t, app.Limiter, app.Options), inside(app)}
	e := echo.New()
	e.Use(outside(app))
	if !app.PerRoute {
		e.Use(chain...)
		chain = nil
	}
	for _, r := range httpsuite.Routes {
		e.Add(r.Method, r.Path, func(c echo.Context) error { return c.String(http.StatusOK, httpsuite.Served(c.FormValue)) }, chain...)
	}
	return httpsuite.Listen(t, e)
}

// outside knows the user and keeps the log.
func outside(app httpsuite.App) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if user := c.Request().Header.Get("X-User"); user != "" {
				c.Set("user", user)
				c.SetRequest(c.Request().WithContext(httpsuite.WithUser(c.Request().Context(), user)))
			}
			err := next(c)
			app.Log(c.Response().Status)
			return err
		}
	}
}

func inside(app httpsuite.App) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { app.Inside(); return next(c) }
	}
}

func limit(t *testing.T, l *hybrid.Limiter, opts *httplimit.Options) echo.MiddlewareFunc {
	t.Helper()
	limit, err := New(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}
