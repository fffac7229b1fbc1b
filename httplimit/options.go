package httplimit

import (
	"net/http"

	"github.com/hybridlimit/hybrid"
)

// Options are the settings of a middleware. The zero value of each field means
// its default.
type Options struct {
	// Key finds what a request is counted under; default RemoteIP(nil).
	Key Key

	// Cost is how many tokens a request takes; default 1 for each. A request of
	// cost 0 is free: it passes without asking, and shows no limit.
	Cost func(*http.Request) int64

	// Skip lets a request pass without asking, such as a health check.
	Skip func(*http.Request) bool

	// Name is what responses call the limit, in the IETF headers and in problem
	// documents; default the limiter's name.
	Name string

	// More are further limits that a request must pass: per day beside per
	// second, per tenant beside per user. All are charged or none. The limit that
	// denied describes the response; else one that only shadow mode let pass, or the
	// tightest one. The limiters must be of one node.
	More []Check

	Headers Headers // how responses show the limit; default XRateLimit
	Names   Names   // the names of those headers, and of Retry-After

	// Problem makes the bodies of refusals problem documents (RFC 9457,
	// application/problem+json); by default they are one line of text. Those of
	// denials have the types quota-exceeded and temporary-reduced-capacity that
	// draft-ietf-httpapi-ratelimit-headers defines.
	Problem bool

	// NoKey is the status of a request that has no key; 400 to 599, default 400.
	// 401 and 403 are usual where the key is an API key.
	NoKey int

	// Deny answers a request that was denied, instead of the default: Decision.Status
	// and a line of text or a problem document. The headers are set already.
	Deny func(http.ResponseWriter, *http.Request, Decision)

	// Failure answers a request that could not be decided, instead of the default:
	// see the table of the package. The error is ErrNoKey, the context's, or one
	// of hybrid. It may hold what a Key function put into it: do not show it to clients.
	Failure func(http.ResponseWriter, *http.Request, error)

	// Decided is told of each decision, once, before the handler runs or the request is
	// refused: to log it, to count it, to write it on a span. What is skipped, free or
	// without a key, and what Failure answers, was not decided.
	Decided func(*http.Request, Decision)
}

// Check is one more limit that requests must pass.
type Check struct {
	Limiter *hybrid.Limiter
	Key     Key                       // default that of the Options
	Cost    func(*http.Request) int64 // default that of the Options. A request of cost 0 is free of this limit
	Name    string                    // default the limiter's name
}

// resolve makes a middleware of the options.
func (o *Options) resolve(limiter *hybrid.Limiter) (*middleware, error) {
	limits := []Limit{{Limiter: limiter, Key: o.Key, Cost: nativeCost(o.Cost), Name: o.Name}}
	for _, c := range o.More {
		limits = append(limits, Limit{Limiter: c.Limiter, Key: c.Key, Cost: nativeCost(c.Cost), Name: c.Name})
	}
	d, err := newDecider(limits, &DeciderOptions{
		Headers: o.Headers, Names: o.Names, Problem: o.Problem, NoKey: o.NoKey, Owner: "httplimit.Options",
	})
	if err != nil {
		return nil, err
	}
	m := &middleware{Decider: d, skip: o.Skip, deny: o.Deny, failure: o.Failure, decided: o.Decided}
	if m.deny == nil {
		m.deny = m.refuse
	}
	if m.failure == nil {
		m.failure = m.fail
	}
	return m, nil
}

// nativeCost is a cost of net/http, as a Decider asks for it.
func nativeCost(cost func(*http.Request) int64) func(Request) int64 {
	if cost == nil {
		return nil
	}
	return func(r Request) int64 { return cost(r.(native).Request) }
}
