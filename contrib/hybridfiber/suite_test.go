package hybridfiber

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/httpsuite"
)

func TestSuite(t *testing.T) {
	httpsuite.Run(t, httpsuite.Framework{
		Serve: serve,
		Param: (*http.Request).PathValue,
		KeyFunc: func(find func(*http.Request) (string, error)) httplimit.Key {
			return KeyFunc(func(c fiber.Ctx) (string, error) { return find(native(c)) })
		},
		ByRoute: httplimit.Pattern(),
		Early:   true,
		Refuse: func(w http.ResponseWriter, _ *http.Request, status int, message string) {
			w.(*refusal).err = fiber.NewError(status, message)
		},
		Refusal: "%s",
	})
}

func serve(t *testing.T, app httpsuite.App) *httpsuite.Client {
	t.Helper()
	chain := []any{limit(t, app.Limiter, translate(app.Options)), func(c fiber.Ctx) error { app.Inside(); return c.Next() }}
	f := fiber.New()
	f.Use(outside(app))
	if !app.PerRoute {
		f.Use(chain...)
		chain = nil
	}
	handlers := append(chain, func(c fiber.Ctx) error {
		return c.SendString(httpsuite.Served(func(name string) string { return c.FormValue(name) }))
	})
	for _, r := range httpsuite.Routes {
		f.Add([]string{r.Method}, r.Path, handlers[0], handlers[1:]...)
	}
	return listen(t, f)
}

func listen(t *testing.T, app *fiber.App) *httpsuite.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections() // for which the server would wait
		if err := app.ShutdownWithTimeout(10 * time.Second); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return httpsuite.NewClient(t, "http://"+listener.Addr().String())
}

// outside knows the user and keeps the log.
func outside(app httpsuite.App) fiber.Handler {
	return func(c fiber.Ctx) error {
		if user := c.Get("X-User"); user != "" {
			c.Locals("user", user)
			c.SetContext(httpsuite.WithUser(c.Context(), strings.Clone(user)))
		}
		err := c.Next()
		app.Log(c.Response().StatusCode())
		return err
	}
}

func limit(t *testing.T, l *hybrid.Limiter, opts *Options) fiber.Handler {
	t.Helper()
	limit, err := New(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// translate makes the Options of those of net/http.
func translate(o *httplimit.Options) *Options {
	if o == nil {
		return nil
	}
	opts := &Options{Key: o.Key, Cost: ofNative(o.Cost), Skip: ofNative(o.Skip), Headers: o.Headers, Problem: o.Problem, NoKey: o.NoKey}
	for _, c := range o.More {
		opts.More = append(opts.More, Check{Limiter: c.Limiter, Key: c.Key, Cost: ofNative(c.Cost)})
	}
	if o.Deny != nil {
		opts.Deny = func(c fiber.Ctx, d httplimit.Decision) error {
			var w refusal
			o.Deny(&w, native(c), d)
			return w.err
		}
	}
	if o.Failure != nil {
		opts.Failure = func(c fiber.Ctx, err error) error {
			var w refusal
			o.Failure(&w, native(c), err)
			return w.err
		}
	}
	if o.Decided != nil {
		opts.Decided = func(c fiber.Ctx, d httplimit.Decision) { o.Decided(native(c), d) }
	}
	return opts
}

func ofNative[V any](f func(*http.Request) V) func(fiber.Ctx) V {
	if f == nil {
		return nil
	}
	return func(c fiber.Ctx) V { return f(native(c)) }
}

// native is a request of Fiber as one of net/http.
func native(c fiber.Ctx) *http.Request {
	r, err := adaptor.ConvertRequest(c, true)
	if err != nil {
		panic(err) // which ends the test
	}
	r.SetPathValue("id", c.Params("id"))
	return r
}

// refusal is the error that a refusal in Fiber's way is. Nobody writes to it.
type refusal struct {
	http.ResponseWriter
	err error
}
