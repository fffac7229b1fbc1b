package hybridecho_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridecho"
	"github.com/hybridlimit/hybrid/httplimit"
)

// The functions of the Options see what Echo knows: here a parameter of the route,
// which says what a request costs.
func ExampleContext() {
	node, stop := newNode()
	defer stop()
	api, err := node.Limiter("exports", hybrid.PerHour(10), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		panic(err)
	}
	costs := map[string]int64{"csv": 1, "pdf": 6}
	limit, err := hybridecho.New(api, &httplimit.Options{
		Key: httplimit.Header("X-API-Key"),
		Cost: func(r *http.Request) int64 {
			if cost, known := costs[hybridecho.Context(r).Param("kind")]; known {
				return cost
			}
			return 10 // what is not understood costs most
		},
	})
	if err != nil {
		panic(err)
	}
	e := echo.New()
	e.GET("/export/:kind", func(c echo.Context) error { return c.String(http.StatusOK, "exported") }, limit)

	for _, path := range []string{"/export/pdf", "/export/pdf", "/export/csv"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("X-API-Key", "k1")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		fmt.Println(path, w.Code, "left:", w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// /export/pdf 200 left: 4
	// /export/pdf 429 left: 4
	// /export/csv 200 left: 3
}

// Echo's own error handler answers who is denied, as it answers all errors.
func ExampleFail() {
	node, stop := newNode()
	defer stop()
	api, err := node.Limiter("api", hybrid.PerMinute(1), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		panic(err)
	}
	limit, err := hybridecho.New(api, &httplimit.Options{
		Key: httplimit.Header("X-API-Key"),
		Deny: func(_ http.ResponseWriter, r *http.Request, d httplimit.Decision) {
			hybridecho.Fail(r, echo.NewHTTPError(d.Status, "slow down"))
		},
	})
	if err != nil {
		panic(err)
	}
	e := echo.New()
	e.Use(limit)
	e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "hello") })
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		fmt.Println("Echo sees", err)
		e.DefaultHTTPErrorHandler(err, c)
	}

	for range 2 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-API-Key", "k1")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 hello
	// Echo sees code=429, message=slow down
	// 429 {"message":"slow down"}
}
