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
	*Decider
	skip    func(*http.Request) bool // or nil
	deny    func(http.ResponseWriter, *http.Request, Decision)
	failure func(http.ResponseWriter, *http.Request, error)
	decided func(*http.Request, Decision) // or nil
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
	v, err := h.decide(r.Context(), native{r})
	switch {
	case err != nil:
		h.failure(w, r, err)
		return
	case v.limit == nil: // free
		h.next.ServeHTTP(w, r)
		return
	}
	h.show(w.Header(), &v)
	if h.decided != nil {
		h.decided(r, v.decision())
	}
	if !v.result.Allowed {
		h.deny(w, r, v.decision())
		return
	}
	h.next.ServeHTTP(w, r)
}

// refuse is the default of Options.Deny.
func (m *middleware) refuse(w http.ResponseWriter, _ *http.Request, d Decision) {
	m.Denial(d).write(w)
}

// fail is the default of Options.Failure.
func (m *middleware) fail(w http.ResponseWriter, _ *http.Request, err error) {
	m.Failure(err).write(w)
}
