package hybridfiber_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/contrib/hybridfiber"
)

// Each tenant has a budget. The name is the first part of the host.
func ExampleKeyFunc() {
	node, stop := newNode()
	defer stop()
	tenants, err := node.Limiter("tenants", hybrid.PerHour(1), &hybrid.LimiterOptions{Accuracy: hybrid.Strict})
	if err != nil {
		panic(err)
	}
	limit, err := hybridfiber.New(tenants, &hybridfiber.Options{
		Key: hybridfiber.KeyFunc(func(c fiber.Ctx) (string, error) {
			name, _, ok := strings.Cut(c.Hostname(), ".")
			if !ok {
				return "", fmt.Errorf("%q names no tenant", c.Hostname())
			}
			return name, nil
		}),
	})
	if err != nil {
		panic(err)
	}
	app := fiber.New()
	app.Use(limit)
	app.Get("/", func(c fiber.Ctx) error { return c.SendString("hello") })

	for _, host := range []string{"acme.example", "acme.example", "other.example", "localhost"} {
		resp, err := app.Test(httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil))
		if err != nil {
			panic(err)
		}
		fmt.Println(host, resp.StatusCode)
	}
	// Output:
	// acme.example 200
	// acme.example 429
	// other.example 200
	// localhost 400
}
