package httplimit

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/hybridlimit/hybrid/internal/fields"
)

// answers is how responses are written, whatever was decided.
type answers struct {
	style   Headers
	names   Names    // canonical
	shown   []string // the names of the headers that show the limit
	problem bool
	noKey   int
}

// answers checks how responses are to be written.
func (o *DeciderOptions) answers() (answers, error) {
	names, err := o.Names.resolve(o.field("Names"), o.Headers)
	if err != nil {
		return answers{}, err
	}
	a := answers{style: o.Headers, names: names, problem: o.Problem, noKey: cmp.Or(o.NoKey, http.StatusBadRequest)}
	switch o.Headers {
	case XRateLimit, XRateLimitEpoch:
		a.shown = []string{names.Limit, names.Remaining, names.Reset}
	case IETF:
		a.shown = []string{names.RateLimit, names.Policy}
	case NoHeaders:
	default:
		return answers{}, refused(o.field("Headers"), o.Headers, "XRateLimit, XRateLimitEpoch, IETF or NoHeaders")
	}
	if a.noKey < 400 || a.noKey > 599 {
		return answers{}, refused(o.field("NoKey"), o.NoKey, "400 to 599")
	}
	return a, nil
}

// Field is a header of a response. Names are canonical.
type Field struct{ Name, Value string }

// Fields returns the headers of the limit for the response to a request that was
// decided, and Retry-After if it was denied. A request that is free shows none, and none of a
// key that is unlimited.
func (a *answers) Fields(d *Decision) []Field {
	if d.limit == nil || fields.Unlimited(&d.Result) {
		return nil
	}
	values := a.values(&verdict{d.limit, d.Key, d.Result})
	all := make([]Field, 0, len(values)+1)
	for i, value := range values {
		all = append(all, Field{a.shown[i], value})
	}
	if s, ok := fields.RetryAfter(&d.Result); ok {
		all = append(all, Field{a.names.RetryAfter, strconv.FormatInt(s, 10)})
	}
	return all
}

// show sets the same in a response of net/http. The names are canonical, so they
// go straight into the map; the values of one response are parts of one string, in
// slices that nobody else has and that no Add can grow into each other.
func (a *answers) show(h http.Header, v *verdict) {
	if fields.Unlimited(&v.result) {
		return
	}
	switch a.style {
	case XRateLimit, XRateLimitEpoch:
		values := fields.XRateLimit(&v.result, a.style == XRateLimitEpoch)
		h[a.names.Limit] = values[0:1:1]
		h[a.names.Remaining] = values[1:2:2]
		h[a.names.Reset] = values[2:3:3]
	case IETF:
		values := a.items(v)
		h[a.names.RateLimit] = values[0:1:1]
		h[a.names.Policy] = values[1:2:2]
	}
	if s, ok := fields.RetryAfter(&v.result); ok {
		h[a.names.RetryAfter] = []string{strconv.FormatInt(s, 10)}
	}
}

// values are those of the headers that show the limit.
func (a *answers) values(v *verdict) []string {
	switch a.style {
	case XRateLimit, XRateLimitEpoch:
		return fields.XRateLimit(&v.result, a.style == XRateLimitEpoch)
	case IETF:
		return a.items(v)
	default:
		return nil
	}
}

// items are the values of the IETF headers.
func (a *answers) items(v *verdict) []string {
	limit := v.limit.limiter.Limit(v.key)
	var room [192]byte
	b := fields.AppendRateLimit(room[:0], v.limit.quoted, limit, &v.result)
	if policy, ok := v.limit.policies.text(v.limit.quoted, limit); ok {
		return []string{string(b), policy}
	}
	i := len(b)
	both := string(fields.AppendPolicy(b, v.limit.quoted, limit)) // in one piece of memory
	return []string{both[:i], both[i:]}
}
