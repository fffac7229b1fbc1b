package hybridgin

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

// What no route matches shares a budget, which is none of a route.
func TestNoRoute(t *testing.T) {
	w := httpsuite.NewWorld(t)
	e := gin.New()
	e.Use(limit(t, w.Limiter("routes", hybrid.PerHour(2)), &httplimit.Options{Key: httplimit.Pattern()}))
	e.GET("/items/:id", func(*gin.Context) {})
	c := httpsuite.Listen(t, e)
	c.Get("/items/1").Want(http.StatusOK, "X-RateLimit-Remaining", "1")
	c.Get("/nowhere").Want(http.StatusNotFound, "X-RateLimit-Remaining", "1")
	c.Get("/elsewhere").Want(http.StatusNotFound, "X-RateLimit-Remaining", "0")
	c.Get("/anywhere").Want(http.StatusTooManyRequests)
}

// A panic of a handler reaches Gin's recovery, and the request stays charged.
func TestPanics(t *testing.T) {
	w := httpsuite.NewWorld(t)
	e := gin.New()
	e.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, err any) {
		c.String(http.StatusInternalServerError, "recovered %v", err)
	}))
	e.Use(limit(t, w.Limiter("api", hybrid.PerHour(2)), nil))
	e.GET("/", func(*gin.Context) { panic("oh") })
	c := httpsuite.Listen(t, e)
	c.Get("/").Want(http.StatusInternalServerError, "X-RateLimit-Remaining", "1").WantBody("recovered oh")
	c.Get("/").Want(http.StatusInternalServerError, "X-RateLimit-Remaining", "0").WantBody("recovered oh")
	c.Get("/").Want(http.StatusTooManyRequests)
}

// Handlers get the request's own context, which somebody may keep.
func TestHandlersGetTheirOwnContext(t *testing.T) {
	w := httpsuite.NewWorld(t)
	e := gin.New()
	e.GET("/", limit(t, w.Limiter("api", hybrid.PerHour(1)), nil), func(c *gin.Context) {
		if _, ok := c.Request.Context().(*call); ok || Context(c.Request) != nil {
			t.Error("the handler has the context of the decision")
		}
	})
	httpsuite.Listen(t, e).Get("/").Want(http.StatusOK)
	if Context(httptest.NewRequest(http.MethodGet, "/", nil)) != nil {
		t.Error("a request of another server has a context of Gin")
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
