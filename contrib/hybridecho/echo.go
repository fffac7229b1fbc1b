package hybridecho

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// New makes a middleware that lets requests pass as far as a limiter allows, for
// Echo.Use, groups and single routes. A request that does not pass is answered, and
// Echo sees no error unless Fail has left one. Options are copied; nil means all
// defaults: each remote address has the limit for itself.
//
// It fails with hybrid.ErrInvalidOption.
func New(limiter *hybrid.Limiter, opts *httplimit.Options) (echo.MiddlewareFunc, error) {
	limit, err := httplimit.New(limiter, opts)
	if err != nil {
		return nil, err
	}
	h := limit(http.HandlerFunc(pass))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			k := &call{Context: c.Request().Context(), echo: c, next: next}
			r := c.Request().WithContext(k)
			r.Pattern = routeOf(c)
			h.ServeHTTP(c.Response(), r)
			return k.err
		}
	}, nil
}

// call is the context of a request while it is decided. Handlers do not get it,
// as Echo uses its own contexts again and somebody may keep theirs.
type call struct {
	context.Context
	echo echo.Context
	next echo.HandlerFunc
	err  error // what the middleware returns
}

// callKey is where a call finds itself.
type callKey struct{}

// Value finds what Echo's context has too.
func (k *call) Value(key any) any {
	if key == (callKey{}) {
		return k
	}
	if name, ok := key.(string); ok {
		if v := k.echo.Get(name); v != nil {
			return v
		}
	}
	return k.Context.Value(key)
}

// pass runs the rest of the chain. A function of the Options may have read the
// body, so what became of it goes along.
func pass(_ http.ResponseWriter, r *http.Request) {
	k := r.Context().(*call)
	own := k.echo.Request()
	own.Body, own.Form, own.PostForm, own.MultipartForm = r.Body, r.Form, r.PostForm, r.MultipartForm
	k.err = k.next(k.echo)
}

// noRoute is the pattern of requests that no route matches. No method is called so.
const noRoute = "(no route)"

func routeOf(c echo.Context) string {
	path := c.Path()
	if path == "" {
		return noRoute
	}
	return c.Request().Method + " " + path
}

// Context returns Echo's context of a request that a function of the Options was
// given; nil of any other request.
func Context(r *http.Request) echo.Context {
	if k, ok := r.Context().Value(callKey{}).(*call); ok {
		return k.echo
	}
	return nil
}

// Fail makes the middleware return an error, such as an *echo.HTTPError, for
// Echo's own error handler to answer: from Options.Deny and Options.Failure, in place
// of writing a response. Of a request that a function of the Options was not given
// it does nothing.
func Fail(r *http.Request, err error) {
	if k, ok := r.Context().Value(callKey{}).(*call); ok {
		k.err = err
	}
}
