package httplimit

import (
	"context"
	"errors"
	"fmt"
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
	// denied describes the response, or the tightest one if all admit. Their limiters
	// must be of Node.
	More []Check

	// Node is the node of the limiters. It is needed with More, and not otherwise.
	Node *hybrid.Node

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

	// Shadowed is told of each request that passes only because a limiter is in
	// shadow mode, before the handler runs.
	Shadowed func(*http.Request, Decision)
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
	names, err := o.Names.resolve(o.Headers)
	if err != nil {
		return nil, err
	}
	m := &middleware{
		skip: o.Skip, node: o.Node, style: o.Headers, names: names, problem: o.Problem,
		noKey: orDefault(o.NoKey, http.StatusBadRequest), deny: o.Deny, failure: o.Failure, shadowed: o.Shadowed,
	}
	if m.deny == nil {
		m.deny = m.refuse
	}
	if m.failure == nil {
		m.failure = m.fail
	}
	first := Check{Limiter: limiter, Key: o.Key, Cost: o.Cost, Name: o.Name}
	if first.Key.isZero() {
		first.Key = RemoteIP(nil)
	}
	if err := m.add("Options", first); err != nil {
		return nil, err
	}
	for i, c := range o.More {
		if err := m.add(fmt.Sprintf("Options.More[%d]", i), c); err != nil {
			return nil, err
		}
	}
	return m, o.validate(m)
}

func (o *Options) validate(m *middleware) error {
	switch {
	case o.Headers > NoHeaders:
		return invalid("Options.Headers", o.Headers, "XRateLimit, XRateLimitEpoch, IETF or NoHeaders")
	case m.noKey < 400 || m.noKey > 599:
		return invalid("Options.NoKey", o.NoKey, "400 to 599")
	case len(o.More) == 0:
		return nil
	case o.Node == nil:
		return invalid("Options.Node", "nil", "the node of the limiters, with Options.More")
	}
	for i := range m.limits {
		if l := &m.limits[i]; !of(l.limiter, o.Node) {
			return invalid("Options.Node", fmt.Sprintf("not the node of limiter %q", l.limiter.Name()), "the node of all limiters")
		}
	}
	return nil
}

// of reports whether a limiter is of a node. A negative cost is found wrong
// after the node, and before anything is charged.
func of(l *hybrid.Limiter, n *hybrid.Node) bool {
	_, err := n.AllowAll(context.Background(), hybrid.Check{Limiter: l, N: -1})
	return !errors.Is(err, hybrid.ErrInvalidOption)
}

// add adds a limit that requests must pass, after the first one.
func (m *middleware) add(field string, c Check) error {
	switch {
	case c.Limiter == nil:
		return invalid(field+": the limiter", "nil", "a limiter")
	case c.Key.err != nil:
		return c.Key.err
	}
	l := limit{limiter: c.Limiter, key: c.Key, cost: c.Cost, name: orDefault(c.Name, c.Limiter.Name()), policies: &policies{}}
	if c.Key.isZero() {
		l.sharesKey, l.key = true, m.limits[0].key
	}
	if l.cost == nil && len(m.limits) > 0 {
		l.cost = m.limits[0].cost
	}
	var ok bool
	if l.quoted, ok = quote(l.name); !ok && m.style == IETF {
		return invalid(field+".Name", fmt.Sprintf("%.64q", l.name), "printable ASCII in the IETF headers; the default is the limiter's name")
	}
	m.limits = append(m.limits, l)
	return nil
}
