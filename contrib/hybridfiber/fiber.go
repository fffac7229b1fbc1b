package hybridfiber

import (
	"github.com/gofiber/fiber/v3"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// New makes a middleware that lets requests pass as far as a limiter allows, for
// App.Use, groups and single routes. A request that does not pass is answered, and
// Fiber sees no error unless Options.Deny or Options.Failure returns one. Options are
// copied; nil means all defaults: each remote address has the limit for itself.
//
// It fails with hybrid.ErrInvalidOption.
func New(limiter *hybrid.Limiter, opts *Options) (fiber.Handler, error) {
	if opts == nil {
		opts = &Options{}
	}
	m, err := opts.resolve(limiter)
	if err != nil {
		return nil, err
	}
	return m.handle, nil
}

// middleware is what all requests of one New share. Nothing in it changes after New.
type middleware struct {
	decider *httplimit.Decider
	skip    func(fiber.Ctx) bool // or nil
	deny    func(fiber.Ctx, httplimit.Decision) error
	failure func(fiber.Ctx, error) error
	decided func(fiber.Ctx, httplimit.Decision) // or nil
}

// handle asks, and shows the limit before the handler runs, which may change the
// headers.
func (m *middleware) handle(c fiber.Ctx) error {
	if m.skip != nil && m.skip(c) {
		return c.Next()
	}
	d, err := m.decider.Decide(&request{c})
	switch {
	case err != nil:
		return m.failure(c, err)
	case d.Limiter == nil: // free
		return c.Next()
	}
	set(c, m.decider.Fields(&d))
	if m.decided != nil {
		m.decided(c, d)
	}
	if !d.Result.Allowed {
		return m.deny(c, d)
	}
	return c.Next()
}

// refuse is the default of Options.Deny.
func (m *middleware) refuse(c fiber.Ctx, d httplimit.Decision) error {
	return send(c, m.decider.Denial(d))
}

// fail is the default of Options.Failure.
func (m *middleware) fail(c fiber.Ctx, err error) error {
	return send(c, m.decider.Failure(err))
}

func send(c fiber.Ctx, a httplimit.Answer) error {
	set(c, a.Fields)
	return c.Status(a.Status).Send(a.Body)
}

func set(c fiber.Ctx, fields []httplimit.Field) {
	for _, f := range fields {
		c.Set(f.Name, f.Value)
	}
}
