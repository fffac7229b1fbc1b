package httplimit

import (
	"net/http"

	"github.com/hybridlimit/hybrid"
)

// New makes a middleware that lets requests pass as far as a limiter allows. It
// is for net/http, and for every router that takes func(http.Handler) http.Handler,
// such as chi and gorilla/mux. Options are copied; nil means all defaults: each
// remote address has the limit for itself.
//
// It fails with hybrid.ErrInvalidOption.
func New(limiter *hybrid.Limiter, opts *Options) (func(http.Handler) http.Handler, error) {
	if opts == nil {
		opts = &Options{}
	}
	m, err := opts.resolve(limiter)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler { return &handler{middleware: m, next: next} }, nil
}

// middleware is what all handlers of one New share. Nothing in it changes after
// New, but for the policies that were seen.
type middleware struct {
	limits   []limit // at least one; those after the first are Options.More
	node     *hybrid.Node
	skip     func(*http.Request) bool
	style    Headers
	names    Names // canonical
	problem  bool
	noKey    int
	deny     func(http.ResponseWriter, *http.Request, Decision)
	failure  func(http.ResponseWriter, *http.Request, error)
	shadowed func(*http.Request, Decision) // or nil
}

// limit is one of the limits that a request must pass.
type limit struct {
	limiter   *hybrid.Limiter
	key       Key
	sharesKey bool                      // key is that of the first limit
	cost      func(*http.Request) int64 // nil: 1
	name      string
	quoted    string // name as a structured field has it
	policies  *policies
}

func (l *limit) costOf(r *http.Request) int64 {
	if l.cost == nil {
		return 1
	}
	return l.cost(r)
}

type handler struct {
	*middleware
	next http.Handler
}

// ServeHTTP asks, and shows the limit before the handler runs, which may change
// the headers.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.skip != nil && h.skip(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	v, err := h.decide(r)
	switch {
	case err != nil:
		h.failure(w, r, err)
		return
	case v.limit == nil: // free
		h.next.ServeHTTP(w, r)
		return
	}
	h.show(w.Header(), &v)
	if !v.result.Allowed {
		h.deny(w, r, v.decision())
		return
	}
	if v.result.Shadowed && h.shadowed != nil {
		h.shadowed(r, v.decision())
	}
	h.next.ServeHTTP(w, r)
}

// verdict is the answer to a request, and the limit that it is about.
type verdict struct {
	limit  *limit // nil: the request was free
	key    string
	result hybrid.Result
}

func (m *middleware) decide(r *http.Request) (verdict, error) {
	if len(m.limits) > 1 {
		return m.decideAll(r)
	}
	l := &m.limits[0]
	cost := l.costOf(r)
	if cost == 0 {
		return verdict{}, nil // AllowN would peek, which asks Redis
	}
	key, err := l.key.of(r)
	if err != nil {
		return verdict{}, err
	}
	res, err := l.limiter.AllowN(r.Context(), key, cost)
	return verdict{limit: l, key: key, result: res}, err
}

// decideAll decides a request that several limits must admit.
func (m *middleware) decideAll(r *http.Request) (verdict, error) {
	var roomC [4]hybrid.Check
	var roomL [4]*limit
	checks, limits, err := m.checks(r, roomC[:0], roomL[:0])
	if err != nil || len(checks) == 0 {
		return verdict{}, err
	}
	res, err := m.node.AllowAll(r.Context(), checks...)
	if err != nil {
		return verdict{}, err
	}
	i := described(checks, res)
	return verdict{limit: limits[i], key: checks[i].Key, result: res}, nil
}

// checks appends what a request must pass, and of which limits that is. What is
// free is left out: in a hybrid.Check a cost of 0 would mean 1.
func (m *middleware) checks(r *http.Request, checks []hybrid.Check, limits []*limit) ([]hybrid.Check, []*limit, error) {
	shared := "" // the first limit's key, once somebody has needed it
	for i := range m.limits {
		l := &m.limits[i]
		cost := l.costOf(r)
		if cost == 0 {
			continue
		}
		key, shares := shared, i == 0 || l.sharesKey
		if !shares || shared == "" {
			var err error
			if key, err = l.key.of(r); err != nil {
				return nil, nil, err
			}
		}
		if shares {
			shared = key
		}
		checks = append(checks, hybrid.Check{Limiter: l.limiter, Key: key, N: cost})
		limits = append(limits, l)
	}
	return checks, limits, nil
}

// described finds the check that a result of AllowAll is about: the first whose
// limit is as large. Where others are as large too, the numbers are the right ones
// in any case.
func described(checks []hybrid.Check, res hybrid.Result) int {
	for i, c := range checks {
		if c.Limiter.Limit(c.Key).Burst() == res.Limit {
			return i
		}
	}
	return 0 // a tier has changed this very moment
}
