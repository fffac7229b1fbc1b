package hybridgin

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// New makes a middleware that lets requests pass as far as a limiter allows, for
// an engine, a group or single routes. A request that does not pass is answered and
// aborted. Options are copied; nil means all defaults: each remote address has the
// limit for itself.
//
// It fails with hybrid.ErrInvalidOption.
func New(limiter *hybrid.Limiter, opts *httplimit.Options) (gin.HandlerFunc, error) {
	limit, err := httplimit.New(limiter, opts)
	if err != nil {
		return nil, err
	}
	h := limit(http.HandlerFunc(pass))
	return func(c *gin.Context) {
		k := &call{Context: c.Request.Context(), gin: c}
		r := c.Request.WithContext(k)
		r.Pattern = routeOf(c)
		h.ServeHTTP(c.Writer, r)
		if !k.passed {
			c.Abort()
		}
	}, nil
}

// call is the context of a request while it is decided. Handlers do not get it,
// as Gin uses its own contexts again and somebody may keep theirs.
type call struct {
	context.Context
	gin    *gin.Context
	passed bool
}

// Value finds what Gin's context has too, and that itself.
func (k *call) Value(key any) any {
	if key == gin.ContextKey {
		return k.gin
	}
	if name, ok := key.(string); ok {
		if v, ok := k.gin.Get(name); ok {
			return v
		}
	}
	return k.Context.Value(key)
}

// pass runs the rest of the chain. A function of the Options may have read the
// body, so what became of it goes along.
func pass(_ http.ResponseWriter, r *http.Request) {
	k := r.Context().(*call)
	k.passed = true
	own := k.gin.Request
	own.Body, own.Form, own.PostForm, own.MultipartForm = r.Body, r.Form, r.PostForm, r.MultipartForm
	k.gin.Next()
}

// noRoute is the pattern of requests that no route matches. No method is called so.
const noRoute = "(no route)"

func routeOf(c *gin.Context) string {
	path := c.FullPath()
	if path == "" {
		return noRoute
	}
	return c.Request.Method + " " + path
}

// Context returns Gin's context of a request that a function of the Options was
// given; nil of any other request.
func Context(r *http.Request) *gin.Context {
	c, _ := r.Context().Value(gin.ContextKey).(*gin.Context)
	return c
}
