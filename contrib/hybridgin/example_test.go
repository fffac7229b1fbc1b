package hybridgin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridgin"
	"github.com/hybridlimit/hybrid/httplimit"
)

// Each user has a budget on each route.
func ExampleNew() {
	node, stop := newNode()
	defer stop()
	api, err := node.Limiter("api", hybrid.PerMinute(2), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		panic(err)
	}
	limit, err := hybridgin.New(api, &httplimit.Options{
		Key: httplimit.Join(httplimit.Value("user"), httplimit.Pattern()),
	})
	if err != nil {
		panic(err)
	}
	router := gin.New()
	router.Use(func(c *gin.Context) { c.Set("user", "ann") }) // in place of a login
	router.Use(limit)
	router.GET("/items/:id", func(c *gin.Context) { c.String(http.StatusOK, "item") })
	router.GET("/users/:id", func(c *gin.Context) { c.String(http.StatusOK, "user") })

	for _, path := range []string{"/items/1", "/items/2", "/items/3", "/users/1"} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code, "left:", w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// /items/1 200 left: 1
	// /items/2 200 left: 0
	// /items/3 429 left: 0
	// /users/1 200 left: 1
}

// newNode makes a node on an embedded Redis, so that the example runs anywhere.
func newNode() (*hybrid.Node, func()) {
	store := miniredis.NewMiniRedis()
	if err := store.Start(); err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: store.Addr()})
	node, err := hybrid.New(rdb, &hybrid.Options{StoreTimeout: time.Second})
	if err != nil {
		panic(err)
	}
	return node, func() {
		_ = node.Close()
		_ = rdb.Close()
		store.Close()
	}
}
