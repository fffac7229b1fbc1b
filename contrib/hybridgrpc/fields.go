package hybridgrpc

import (
	"context"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/httplimit"
)

// Names of what answers carry, as metadata has them: in small letters.
const (
	fieldLimit     = "x-ratelimit-limit"
	fieldRemaining = "x-ratelimit-remaining"
	fieldReset     = "x-ratelimit-reset"
	fieldRateLimit = "ratelimit"
	fieldPolicy    = "ratelimit-policy"
	fieldRetry     = "retry-after"
	fieldPushback  = "grpc-retry-pushback-ms" // gRFC A6
)

// doNotRetry is the pushback that tells a client's retry policy to give up.
const doNotRetry = "-1"

// fields is what an answer shows; nil if that is nothing. The values of one answer
// are parts of one string, in slices that no append can grow into each other.
func (s *server) fields(ctx context.Context, v *verdict) metadata.MD {
	var md metadata.MD
	switch style := s.options.Headers; {
	case v.limit == nil:
		return nil
	case style == httplimit.NoHeaders && v.result.Allowed:
		return nil
	case style == httplimit.NoHeaders:
		md = make(metadata.MD, 2)
	case style == httplimit.IETF:
		md = ietf(v)
	default:
		md = parts(style, &v.result)
	}
	if v.result.Allowed {
		return md
	}
	if seconds, ok := retrySeconds(&v.result); ok {
		md[fieldRetry] = []string{strconv.FormatInt(seconds, 10)}
	}
	md[fieldPushback] = []string{s.pushbackOf(ctx, v)}
	return md
}

// parts are the x-ratelimit fields.
func parts(style httplimit.Headers, r *hybrid.Result) metadata.MD {
	reset := wholeSeconds(untilReset(r))
	if style == httplimit.XRateLimitEpoch {
		reset = unixAfter(time.Now(), untilReset(r))
	}
	var room [3 * len("-9223372036854775808")]byte
	b := strconv.AppendInt(room[:0], r.Limit, 10)
	i := len(b)
	b = strconv.AppendInt(b, r.Remaining, 10)
	j := len(b)
	b = strconv.AppendInt(b, reset, 10)
	text := string(b)
	values := []string{text[:i], text[i:j], text[j:]}
	return metadata.MD{fieldLimit: values[0:1:1], fieldRemaining: values[1:2:2], fieldReset: values[2:3:3]}
}

// ietf are the fields of draft-ietf-httpapi-ratelimit-headers.
func ietf(v *verdict) metadata.MD {
	limit := v.limit.limiter.Limit(v.key)
	var room [192]byte
	b := append(room[:0], v.limit.quoted...)
	b = append(b, ";r="...)
	b = appendInteger(b, v.result.Remaining)
	if t, ok := effectiveWindow(limit, &v.result); ok {
		b = append(b, ";t="...)
		b = appendInteger(b, t)
	}
	i := len(b)
	text := string(appendPolicy(b, v.limit.quoted, limit))
	values := []string{text[:i], text[i:]}
	return metadata.MD{fieldRateLimit: values[0:1:1], fieldPolicy: values[1:2:2]}
}

// appendPolicy writes a limit as an item of ratelimit-policy. Its window is in whole
// seconds; the quota is what the limit gives in as many, rounded down.
func appendPolicy(b []byte, quoted string, l hybrid.Limit) []byte {
	w := max(1, wholeSeconds(l.Period()))
	q := l.Count()
	if l.Period() != time.Duration(w)*time.Second {
		q = int64(math.Min(float64(q)*float64(w)/l.Period().Seconds(), maxInteger))
	}
	b = append(b, quoted...)
	b = append(b, ";q="...)
	b = appendInteger(b, q)
	b = append(b, ";w="...)
	return appendInteger(b, w)
}

// maxInteger is the largest Integer of a structured field (RFC 9651, 3.3.1). Limits
// may be larger.
const maxInteger = 999_999_999_999_999

func appendInteger(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(max(n, 0), maxInteger), 10)
}

// pushbackOf is how many milliseconds a client's retry policy is to wait. It is told
// not to retry where that would be in vain: no wait helps, or the call is over before,
// or it is longer than a call should hang; and a stream that is sent again would charge
// again what had passed.
func (s *server) pushbackOf(ctx context.Context, v *verdict) string {
	delay, ok := retryAfter(&v.result)
	if !ok || v.message || delay > s.pushback {
		return doNotRetry
	}
	if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < delay {
		return doNotRetry
	}
	return strconv.FormatInt(delay.Milliseconds(), 10)
}
