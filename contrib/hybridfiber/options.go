package hybridfiber

import (
	"github.com/gofiber/fiber/v3"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// Options are the settings of a middleware: those of httplimit.Options, with
// Fiber's context in place of the request. The zero value of each field means its
// default.
type Options struct {
	// Key finds what a request is counted under; default httplimit.RemoteIP(nil).
	// All kinds of keys serve but httplimit.KeyFunc, whose place KeyFunc takes.
	Key httplimit.Key

	// Cost is how many tokens a request takes; default 1 for each. A request of
	// cost 0 is free: it passes without asking, and shows no limit.
	Cost func(fiber.Ctx) int64

	// Skip lets a request pass without asking, such as a health check.
	Skip func(fiber.Ctx) bool

	// Name is what responses call the limit, in the IETF headers and in problem
	// documents; default the limiter's name.
	Name string

	// More are further limits that a request must pass. All are charged or none. The
	// limit that denied describes the response; else one that only shadow mode let pass,
	// or the tightest one. The limiters must be of one node.
	More []Check

	Headers httplimit.Headers // how responses show the limit; default httplimit.XRateLimit
	Names   httplimit.Names   // the names of those headers, and of Retry-After
	Problem bool              // makes the bodies of refusals problem documents; by default they are one line of text
	NoKey   int               // the status of a request that has no key; 400 to 599, default 400

	// Deny answers a request that was denied, instead of the default: Decision.Status
	// and a line of text or a problem document. The headers are set already. An error
	// goes to the app's error handler.
	Deny func(fiber.Ctx, httplimit.Decision) error

	// Failure answers a request that could not be decided, instead of the default.
	// The error is httplimit.ErrNoKey, the context's, or one of hybrid. It may hold what
	// a Key function put into it: do not show it to clients.
	Failure func(fiber.Ctx, error) error

	// Decided is told of each decision, once, before the handler runs or the request is
	// refused. What is skipped, free or without a key, and what Failure answers, was not
	// decided.
	Decided func(fiber.Ctx, httplimit.Decision)
}

// Check is one more limit that requests must pass.
type Check struct {
	Limiter *hybrid.Limiter
	Key     httplimit.Key         // default that of the Options
	Cost    func(fiber.Ctx) int64 // default that of the Options. A request of cost 0 is free of this limit
	Name    string                // default the limiter's name
}

func (o *Options) resolve(limiter *hybrid.Limiter) (*middleware, error) {
	limits := []httplimit.Limit{{Limiter: limiter, Key: o.Key, Cost: costOf(o.Cost), Name: o.Name}}
	for _, c := range o.More {
		limits = append(limits, httplimit.Limit{Limiter: c.Limiter, Key: c.Key, Cost: costOf(c.Cost), Name: c.Name})
	}
	d, err := httplimit.NewDecider(limits, &httplimit.DeciderOptions{
		Headers: o.Headers, Names: o.Names, Problem: o.Problem, NoKey: o.NoKey,
		CopyKeys: true, Owner: "hybridfiber.Options",
	})
	if err != nil {
		return nil, err
	}
	m := &middleware{decider: d, skip: o.Skip, deny: o.Deny, failure: o.Failure, decided: o.Decided}
	if m.deny == nil {
		m.deny = m.refuse
	}
	if m.failure == nil {
		m.failure = m.fail
	}
	return m, nil
}

// costOf is a cost of Fiber, as a Decider asks for it.
func costOf(cost func(fiber.Ctx) int64) func(httplimit.Request) int64 {
	if cost == nil {
		return nil
	}
	return func(r httplimit.Request) int64 { return cost(r.(*request).fiber) }
}
