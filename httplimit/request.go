package httplimit

import (
	"context"
	"net/http"
)

// Request is a request as Keys see it, whatever server it came to. Adapters of
// servers that have no *http.Request implement it: see Decider.
type Request interface {
	Context() context.Context         // who waits for Redis waits no longer than it
	RemoteAddr() string               // where the connection came from, as in http.Request
	Header(canonical string) []string // the lines of a header, in their order; they are only read
	Pattern() string                  // of the route; "" if there is none
	Value(key any) any                // what was left with the request under a key; nil if nothing was
}

// native is a request of net/http. It is a pointer, so a Request of it is no
// allocation.
type native struct{ *http.Request }

func (n native) RemoteAddr() string               { return n.Request.RemoteAddr }
func (n native) Header(canonical string) []string { return n.Request.Header[canonical] }
func (n native) Pattern() string                  { return n.Request.Pattern }
func (n native) Value(key any) any                { return n.Context().Value(key) }
