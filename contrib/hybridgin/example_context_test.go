package hybridgin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridgin"
	"github.com/hybridlimit/hybrid/httplimit"
)

// The functions of the Options see what Gin knows: here a parameter of the route,
// which says what a request costs.
func ExampleContext() {
	node, stop := newNode()
	defer stop()
	api, err := node.Limiter("exports", hybrid.PerHour(10), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		panic(err)
	}
	costs := map[string]int64{"csv": 1, "pdf": 6}
	limit, err := hybridgin.New(api, &httplimit.Options{
		Key: httplimit.Header("X-API-Key"),
		Cost: func(r *http.Request) int64 {
			if cost, known := costs[hybridgin.Context(r).Param("kind")]; known {
				return cost
			}
			return 10 // what is not understood costs most
		},
	})
	if err != nil {
		panic(err)
	}
	router := gin.New()
	router.GET("/export/:kind", limit, func(c *gin.Context) { c.String(http.StatusOK, "exported") })

	for _, path := range []string{"/export/pdf", "/export/pdf", "/export/csv"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("X-API-Key", "k1")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		fmt.Println(path, w.Code, "left:", w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// /export/pdf 200 left: 4
	// /export/pdf 429 left: 4
	// /export/csv 200 left: 3
}
