package httplimit

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
)

// Headers says how responses show the limit.
type Headers uint8

const (
	// XRateLimit is X-RateLimit-Limit (the most that fits at once),
	// X-RateLimit-Remaining, and X-RateLimit-Reset: the seconds until all of the
	// limit is free again, as Redis last told, if nobody uses it.
	XRateLimit Headers = iota

	// XRateLimitEpoch is the same with X-RateLimit-Reset as a Unix time, in seconds.
	XRateLimitEpoch

	// IETF is RateLimit and RateLimit-Policy, as in generation 08 to 11 of
	// draft-ietf-httpapi-ratelimit-headers: "api";r=12;t=8 says that 12 remain for the
	// next 8 seconds, and "api";q=100;w=60 that the policy is 100 in 60 seconds.
	//
	// A token bucket refills all the time, so t is the time in which it refills as
	// much as remains: who spreads r evenly over t keeps to the limit for ever. Of a
	// window it is the time to its end, and of a denial that of Retry-After. Periods
	// below a second, and broken ones, are rounded up to whole seconds and their
	// counts made to fit.
	//
	// The policy is that of the key, so LimitFor is called once more per request.
	IETF

	// NoHeaders shows nothing but Retry-After on denials.
	NoHeaders
)

// String returns "XRateLimit", "XRateLimitEpoch", "IETF" or "NoHeaders".
func (h Headers) String() string {
	switch h {
	case XRateLimit:
		return "XRateLimit"
	case XRateLimitEpoch:
		return "XRateLimitEpoch"
	case IETF:
		return "IETF"
	case NoHeaders:
		return "NoHeaders"
	default:
		return fmt.Sprintf("Headers(%d)", uint8(h))
	}
}

// Names are the names of the headers, in any case: they are sent as
// http.CanonicalHeaderKey writes them, and in small letters over HTTP/2. An empty
// one means its default.
type Names struct {
	Limit     string // default X-RateLimit-Limit
	Remaining string // default X-RateLimit-Remaining
	Reset     string // default X-RateLimit-Reset

	RateLimit string // default RateLimit
	Policy    string // default RateLimit-Policy

	RetryAfter string // default Retry-After
}

// resolve returns the names with their defaults, in canonical form. Two that are
// sent with one response must differ. Errors call the names by owner.
func (n Names) resolve(owner string, style Headers) (Names, error) {
	all := []struct {
		field    string
		name     *string
		standard string
		styles   []Headers // that use it; none: all do
	}{
		{"Limit", &n.Limit, "X-RateLimit-Limit", []Headers{XRateLimit, XRateLimitEpoch}},
		{"Remaining", &n.Remaining, "X-RateLimit-Remaining", []Headers{XRateLimit, XRateLimitEpoch}},
		{"Reset", &n.Reset, "X-RateLimit-Reset", []Headers{XRateLimit, XRateLimitEpoch}},
		{"RateLimit", &n.RateLimit, "RateLimit", []Headers{IETF}},
		{"Policy", &n.Policy, "RateLimit-Policy", []Headers{IETF}},
		{"RetryAfter", &n.RetryAfter, "Retry-After", nil},
	}
	seen := map[string]string{}
	for _, h := range all {
		field := owner + "." + h.field
		if err := checkName(field, cmp.Or(*h.name, h.standard)); err != nil {
			return Names{}, err
		}
		*h.name = http.CanonicalHeaderKey(cmp.Or(*h.name, h.standard))
		if h.styles != nil && !slices.Contains(h.styles, style) {
			continue
		}
		if other, ok := seen[*h.name]; ok {
			return Names{}, refused(field, fmt.Sprintf("%q", *h.name), "a name other than that of "+owner+"."+other)
		}
		seen[*h.name] = h.field
	}
	return n, nil
}

// framing are headers whose value says how a response is to be read.
var framing = []string{"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func checkName(field, name string) error {
	switch {
	case !isToken(name):
		return refused(field, fmt.Sprintf("%.64q", name), "a header name: letters, digits and !#$%&'*+-.^_`|~")
	case slices.Contains(framing, http.CanonicalHeaderKey(name)):
		return refused(field, fmt.Sprintf("%q", name), "a header name with no meaning for the message's framing or content")
	}
	return nil
}
