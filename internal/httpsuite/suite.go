// Package httpsuite holds every adapter of httplimit against one suite of tests:
// middlewares of net/http and its routers, of Gin, Echo and Fiber do the same. It
// comes with a World and a Client, for tests of what only one of them does.
package httpsuite

import (
	"context"
	"net/http"
	"testing"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// Framework is what the suite must know of a framework.
type Framework struct {
	Serve   func(*testing.T, App) *Client                           // until the test ends
	Param   func(r *http.Request, name string) string               // how functions of the Options find a part of the path
	KeyFunc func(func(*http.Request) (string, error)) httplimit.Key // httplimit's, or its own
	ByRoute httplimit.Key                                           // counts each route for itself

	// Early says that a limit around all routes is asked before the route is known.
	Early bool

	// Refuse answers in the framework's way, where Options.Deny or Options.Failure is
	// asked to. Refusal is the body, in which %s is the message.
	Refuse  func(w http.ResponseWriter, r *http.Request, status int, message string)
	Refusal string
}

// App is a server to be made: from outside to inside, a middleware that knows the
// user and keeps a log, the limit, one more middleware, and the Routes.
type App struct {
	Limiter  *hybrid.Limiter
	Options  *httplimit.Options
	PerRoute bool             // the limit and what is inside of it belong to each route; else they are around all
	Log      func(status int) // is told what has been answered
	Inside   func()           // is told of a request that the limit has let pass
}

// Route is where a handler is, which answers Served.
type Route struct{ Method, Path string }

// Routes are those of every App.
var Routes = []Route{
	{http.MethodGet, "/items/:id"},
	{http.MethodPost, "/items/:id"},
	{http.MethodGet, "/users/:id"},
}

// Served is what handlers answer. They say how they read the values of a form.
func Served(form func(name string) string) string { return "served" + form("rows") }

type userKey struct{}

// WithUser leaves a user in a request's context. An App leaves the one that the
// header X-User names there, and under "user" among the framework's own values.
func WithUser(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// Run runs the suite twice: with limits on routes, and with limits around all of them.
func Run(t *testing.T, f Framework) {
	t.Run("on routes", func(t *testing.T) {
		f.run(t, true, tests)
		f.run(t, true, testsOfRoutes)
	})
	t.Run("around all", func(t *testing.T) {
		f.run(t, false, tests)
		if !f.Early {
			f.run(t, false, testsOfRoutes)
		}
	})
}

func (f Framework) run(t *testing.T, perRoute bool, tests map[string]func(*suite)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(&suite{World: NewWorld(t), Framework: f, perRoute: perRoute}) })
	}
}

// suite is what one test has to do with.
type suite struct {
	*World
	Framework
	perRoute bool
}

func (s *suite) limit(l *hybrid.Limiter, opts *httplimit.Options) *Client {
	s.t.Helper()
	return s.serve(App{Limiter: l, Options: opts, Log: func(int) {}, Inside: func() {}})
}

func (s *suite) serve(app App) *Client {
	s.t.Helper()
	app.PerRoute = s.perRoute
	return s.Serve(s.t, app)
}
