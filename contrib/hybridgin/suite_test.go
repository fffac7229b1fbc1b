package hybridgin

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

func init() { gin.SetMode(gin.TestMode) }

func TestSuite(t *testing.T) {
	httpsuite.Run(t, httpsuite.Framework{
		Serve:   serve,
		Param:   func(r *http.Request, name string) string { return Context(r).Param(name) },
		KeyFunc: httplimit.KeyFunc,
		ByRoute: httplimit.Pattern(),
		Refuse: func(_ http.ResponseWriter, r *http.Request, status int, message string) {
			Context(r).AbortWithStatusJSON(status, gin.H{"error": message})
		},
		Refusal: `{"error":"%s"}`,
	})
}

func serve(t *testing.T, app httpsuite.App) *httpsuite.Client {
	t.Helper()
	chain := []gin.HandlerFunc{limit(t, app.Limiter, app.Options), func(*gin.Context) { app.Inside() }}
	e := gin.New()
	e.ContextWithFallback = app.PerRoute // Gin's context looks in the request's then, which must not look back
	e.Use(outside(app))
	if !app.PerRoute {
		e.Use(chain...)
		chain = nil
	}
	for _, r := range httpsuite.Routes {
		e.Handle(r.Method, r.Path, append(chain, func(c *gin.Context) { c.String(http.StatusOK, "%s", httpsuite.Served(c.PostForm)) })...)
	}
	return httpsuite.Listen(t, e)
}

// outside knows the user and keeps the log.
func outside(app httpsuite.App) gin.HandlerFunc {
	return func(c *gin.Context) {
		if user := c.GetHeader("X-User"); user != "" {
			c.Set("user", user)
			c.Request = c.Request.WithContext(httpsuite.WithUser(c.Request.Context(), user))
		}
		c.Next()
		app.Log(c.Writer.Status())
	}
}

func limit(t *testing.T, l *hybrid.Limiter, opts *httplimit.Options) gin.HandlerFunc {
	t.Helper()
	limit, err := New(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}
