package conformance

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"

	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

// The routers take the middleware as it is, and their route patterns make keys.

func TestServeMux(t *testing.T) {
	run(t, httpsuite.Framework{Param: (*http.Request).PathValue, ByRoute: httplimit.Pattern(), Early: true}, func(around, each wrapper) http.Handler {
		m := http.NewServeMux()
		for _, r := range httpsuite.Routes {
			m.Handle(r.Method+" "+pattern(r), each(served))
		}
		return around(m)
	})
}

func TestChi(t *testing.T) {
	byRoute := httplimit.KeyFunc(func(r *http.Request) (string, error) {
		return r.Method + " " + chi.RouteContext(r.Context()).RoutePattern(), nil
	})
	run(t, httpsuite.Framework{Param: chi.URLParam, ByRoute: byRoute, Early: true}, func(around, each wrapper) http.Handler {
		m := chi.NewRouter()
		m.Use(around)
		m.Group(func(g chi.Router) {
			g.Use(each)
			for _, r := range httpsuite.Routes {
				g.Method(r.Method, pattern(r), served)
			}
		})
		return m
	})
}

func TestGorilla(t *testing.T) {
	byRoute := httplimit.KeyFunc(func(r *http.Request) (string, error) {
		path, err := mux.CurrentRoute(r).GetPathTemplate()
		return r.Method + " " + path, err
	})
	param := func(r *http.Request, name string) string { return mux.Vars(r)[name] }
	run(t, httpsuite.Framework{Param: param, ByRoute: byRoute}, func(around, each wrapper) http.Handler {
		m := mux.NewRouter()
		m.Use(around)
		for _, r := range httpsuite.Routes {
			m.Handle(pattern(r), each(served)).Methods(r.Method)
		}
		return m
	})
}

func pattern(r httpsuite.Route) string { return strings.Replace(r.Path, ":id", "{id}", 1) }

type wrapper = func(http.Handler) http.Handler

// run runs the suite on a router, which is given what to put around all routes and
// around each.
func run(t *testing.T, f httpsuite.Framework, router func(around, each wrapper) http.Handler) {
	f.KeyFunc = httplimit.KeyFunc
	f.Refuse = func(w http.ResponseWriter, _ *http.Request, status int, message string) {
		http.Error(w, message, status)
	}
	f.Refusal = "%s\n"
	f.Serve = func(t *testing.T, app httpsuite.App) *httpsuite.Client {
		t.Helper()
		limit := middleware(t, app.Limiter, app.Options)
		limited := func(next http.Handler) http.Handler { return limit(inside(app, next)) }
		around := func(next http.Handler) http.Handler { return outside(app, next) }
		if app.PerRoute {
			return httpsuite.Listen(t, router(around, limited))
		}
		return httpsuite.Listen(t, router(
			func(next http.Handler) http.Handler { return around(limited(next)) },
			func(next http.Handler) http.Handler { return next },
		))
	}
	httpsuite.Run(t, f)
}

// outside knows the user and keeps the log.
func outside(app httpsuite.App, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("X-User"); user != "" {
			ctx := context.WithValue(r.Context(), "user", user) //nolint:staticcheck // a string, as frameworks call their values
			r = r.WithContext(httpsuite.WithUser(ctx, user))
		}
		log := &recorder{w, http.StatusOK}
		next.ServeHTTP(log, r)
		app.Log(log.status)
	})
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func inside(app httpsuite.App, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		app.Inside()
		next.ServeHTTP(w, r)
	})
}
