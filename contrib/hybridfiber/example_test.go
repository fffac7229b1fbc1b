package hybridfiber_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gofiber/fiber/v3"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridfiber"
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
	limit, err := hybridfiber.New(api, &hybridfiber.Options{
		Key: httplimit.Join(httplimit.Value("user"), httplimit.Pattern()),
	})
	if err != nil {
		panic(err)
	}
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error { // in place of a login
		c.Locals("user", "ann")
		return c.Next()
	})
	app.Get("/items/:id", limit, func(c fiber.Ctx) error { return c.SendString("item") })
	app.Get("/users/:id", limit, func(c fiber.Ctx) error { return c.SendString("user") })

	for _, path := range []string{"/items/1", "/items/2", "/items/3", "/users/1"} {
		resp, err := app.Test(httptest.NewRequest(http.MethodGet, path, nil))
		if err != nil {
			panic(err)
		}
		fmt.Println(path, resp.StatusCode, "left:", resp.Header.Get("X-RateLimit-Remaining"))
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
