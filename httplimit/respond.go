package httplimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/hybridlimit/hybrid"
)

// statusClientLeft is what logs call a request whose client did not wait for
// the answer. Nobody receives it.
const statusClientLeft = 499

// problem is a problem document (RFC 9457).
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// Types of problems, registered by draft-ietf-httpapi-ratelimit-headers.
const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// refuse is the default of Options.Deny.
func (m *middleware) refuse(w http.ResponseWriter, _ *http.Request, d Decision) {
	p := problem{Type: quotaExceeded, Title: "Request cannot be satisfied as assigned quota has been exceeded", Violated: []string{d.Name}}
	if d.Status == http.StatusServiceUnavailable { // nobody exceeded anything
		p = problem{Type: reducedCapacity, Title: "Request cannot be satisfied due to temporary server capacity constraints"}
	}
	p.Status, p.Detail = d.Status, "The request can never pass: it costs more than the limit."
	if s, ok := d.RetryAfter(); ok {
		p.Detail = fmt.Sprintf("Retry after %d s.", s)
	}
	m.answer(w, &p)
}

// fail is the default of Options.Failure. What err says is for the server's
// eyes: the client gets a status.
func (m *middleware) fail(w http.ResponseWriter, _ *http.Request, err error) {
	p := problem{Type: "about:blank", Status: m.failureStatus(err)}
	switch {
	case p.Status == statusClientLeft:
		w.WriteHeader(statusClientLeft)
		return
	case isNoKey(err):
		p.Detail = "The request does not say clearly who it comes from."
	case p.Status == http.StatusServiceUnavailable:
		w.Header()[m.names.RetryAfter] = []string{"1"}
	}
	p.Title = titleOf(p.Status)
	m.answer(w, &p)
}

// failureStatus is the status of a request that could not be decided.
func (m *middleware) failureStatus(err error) int {
	switch {
	case isNoKey(err):
		return m.noKey
	case errors.Is(err, context.Canceled):
		return statusClientLeft
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, hybrid.ErrClosed):
		return http.StatusServiceUnavailable
	default: // a negative cost
		return http.StatusInternalServerError
	}
}

// isNoKey reports whether a request has no key, or none that can be used: too
// long a one is the client's doing too.
func isNoKey(err error) bool {
	return errors.Is(err, ErrNoKey) || errors.Is(err, hybrid.ErrInvalidKey)
}

// answer writes a refusal, which no cache may keep.
func (m *middleware) answer(w http.ResponseWriter, p *problem) {
	h := w.Header()
	h["Cache-Control"] = []string{"no-store"}
	if !m.problem {
		http.Error(w, titleOf(p.Status), p.Status)
		return
	}
	body, _ := json.Marshal(p) // never fails for strings and numbers
	h["Content-Type"] = []string{"application/problem+json"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	delete(h, "Content-Length")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that left is no news
}

// titleOf says a status in words; Options.NoKey may be one that has none.
func titleOf(status int) string { return orDefault(http.StatusText(status), "Refused") }
