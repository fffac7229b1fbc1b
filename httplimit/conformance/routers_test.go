package conformance

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// The routers take the middleware as it is, and their route patterns make keys.
func TestRouters(t *testing.T) {
	node := newNode(t)
	byPattern := func(pattern func(*http.Request) (string, error)) *httplimit.Options {
		return &httplimit.Options{Key: httplimit.KeyFunc(pattern)}
	}
	standard := http.NewServeMux()
	mw := middleware(t, node, "net/http", hybrid.PerHour(2), &httplimit.Options{Key: httplimit.Pattern()})
	standard.Handle("GET /items/{id}", mw(served))
	standard.Handle("GET /users/{id}", mw(served))

	withChi := chi.NewRouter()
	withChi.Group(func(r chi.Router) {
		r.Use(middleware(t, node, "chi", hybrid.PerHour(2), byPattern(func(r *http.Request) (string, error) {
			return chi.RouteContext(r.Context()).RoutePattern(), nil
		})))
		r.Get("/items/{id}", served)
		r.Get("/users/{id}", served)
	})

	withGorilla := mux.NewRouter()
	withGorilla.Use(middleware(t, node, "gorilla", hybrid.PerHour(2), byPattern(func(r *http.Request) (string, error) {
		return mux.CurrentRoute(r).GetPathTemplate()
	})))
	withGorilla.Handle("/items/{id}", served)
	withGorilla.Handle("/users/{id}", served)

	for name, h := range map[string]http.Handler{"net/http": standard, "chi": withChi, "gorilla": withGorilla} {
		url := listen(t, h)
		for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
			resp := get(t, fmt.Sprintf("%s/items/%d", url, i))
			if resp.StatusCode != want || resp.Header.Get("X-RateLimit-Limit") != "2" {
				t.Errorf("%s: request %d: %d, %v; want %d", name, i, resp.StatusCode, resp.Header, want)
			}
		}
		if resp := get(t, url+"/users/1"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: another route: %d", name, resp.StatusCode)
		}
	}
}
