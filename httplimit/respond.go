package httplimit

import (
	"cmp"
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

// Answer is the response to a request that does not pass.
type Answer struct {
	Status int
	Fields []Field
	Body   []byte // empty where nobody reads it
}

// Denial is the default answer to a request that was denied, without the headers
// of the limit.
func (a *answers) Denial(d Decision) Answer {
	p := problem{Type: quotaExceeded, Title: "Request cannot be satisfied as assigned quota has been exceeded", Violated: []string{d.Name}}
	if d.Status == http.StatusServiceUnavailable { // nobody exceeded anything
		p = problem{Type: reducedCapacity, Title: "Request cannot be satisfied due to temporary server capacity constraints"}
	}
	p.Status, p.Detail = d.Status, "The request can never pass: it costs more than the limit."
	if s, ok := d.RetryAfter(); ok {
		p.Detail = fmt.Sprintf("Retry after %d s.", s)
	}
	return a.answer(&p)
}

// Failure is the default answer to a request that could not be decided. What err
// says is for the server's eyes: the client gets a status.
func (a *answers) Failure(err error) Answer {
	p := problem{Type: "about:blank", Status: a.failureStatus(err)}
	p.Title = titleOf(p.Status)
	switch {
	case p.Status == statusClientLeft:
		return Answer{Status: statusClientLeft}
	case errors.Is(err, ErrNoKey):
		p.Detail = "The request does not say clearly who it comes from."
	case p.Status == http.StatusServiceUnavailable:
		return a.answer(&p, Field{a.names.RetryAfter, "1"})
	}
	return a.answer(&p)
}

// failureStatus is the status of a request that could not be decided.
func (a *answers) failureStatus(err error) int {
	switch {
	case errors.Is(err, ErrNoKey):
		return a.noKey
	case errors.Is(err, context.Canceled):
		return statusClientLeft
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, hybrid.ErrClosed):
		return http.StatusServiceUnavailable
	default: // a negative cost
		return http.StatusInternalServerError
	}
}

// answer words a refusal, which no cache may keep.
func (a *answers) answer(p *problem, more ...Field) Answer {
	kind, body := "text/plain; charset=utf-8", []byte(titleOf(p.Status))
	if a.problem {
		kind = "application/problem+json"
		body, _ = json.Marshal(p) // never fails for strings and numbers
	}
	return Answer{Status: p.Status, Body: append(body, '\n'), Fields: append(more,
		Field{"Cache-Control", "no-store"}, Field{"Content-Type", kind}, Field{"X-Content-Type-Options", "nosniff"})}
}

// write answers a request of net/http.
func (a Answer) write(w http.ResponseWriter) {
	h := w.Header()
	for _, f := range a.Fields {
		h[f.Name] = []string{f.Value}
	}
	delete(h, "Content-Length") // of the body that is not sent
	w.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		_, _ = w.Write(a.Body) // a client that left is no news
	}
}

// titleOf says a status in words; Options.NoKey may be one that has none.
func titleOf(status int) string { return cmp.Or(http.StatusText(status), "Refused") }
