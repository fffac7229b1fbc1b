package hybridfiber

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v3"

	"github.com/hybridlimit/hybrid/httplimit"
)

// request is a request of Fiber as Keys see it. Its strings may be of memory that
// is used again for the next request: see httplimit.DeciderOptions.CopyKeys.
type request struct{ fiber fiber.Ctx }

// Context is the one that Ctx.SetContext has set: fasthttp does not say when a
// client has left.
func (r *request) Context() context.Context { return r.fiber.Context() }

func (r *request) RemoteAddr() string { return r.fiber.RequestCtx().RemoteAddr().String() }

func (r *request) Header(canonical string) []string {
	lines := r.fiber.Request().Header.PeekAll(canonical)
	if len(lines) == 0 {
		return nil
	}
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = string(line)
	}
	return texts
}

// Pattern is empty in a middleware of Use, whose own route Fiber shows: which one
// will serve the request is not known yet.
func (r *request) Pattern() string {
	if !r.fiber.Matched() {
		return ""
	}
	return r.fiber.Method() + " " + r.fiber.Route().Path
}

func (r *request) Value(key any) any {
	if v := r.fiber.Locals(key); v != nil {
		return v
	}
	return r.fiber.Context().Value(key)
}

var errNotFiber = errors.New("hybridfiber: the request did not come through Fiber")

// KeyFunc makes a Key of a function of Fiber's context. It is called for each
// request, from any goroutine. What it returns is copied before anybody remembers
// it, so it may be a string of the request. A nil function is refused by New.
func KeyFunc(find func(fiber.Ctx) (string, error)) httplimit.Key {
	if find == nil {
		return httplimit.RequestKey(nil)
	}
	return httplimit.RequestKey(func(r httplimit.Request) (string, error) {
		own, ok := r.(*request)
		if !ok {
			return "", errNotFiber
		}
		return find(own.fiber)
	})
}
