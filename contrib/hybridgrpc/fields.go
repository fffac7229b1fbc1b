package hybridgrpc

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/hybridlimit/hybrid/httplimit"
	"github.com/hybridlimit/hybrid/internal/fields"
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
	case v.limit == nil || fields.Unlimited(&v.result):
		return nil
	case style == httplimit.NoHeaders && v.result.Allowed:
		return nil
	case style == httplimit.NoHeaders:
		md = make(metadata.MD, 2)
	case style == httplimit.IETF:
		md = ietf(v)
	default:
		values := fields.XRateLimit(&v.result, style == httplimit.XRateLimitEpoch)
		md = metadata.MD{fieldLimit: values[0:1:1], fieldRemaining: values[1:2:2], fieldReset: values[2:3:3]}
	}
	if v.result.Allowed {
		return md
	}
	if seconds, ok := fields.RetryAfter(&v.result); ok {
		md[fieldRetry] = []string{strconv.FormatInt(seconds, 10)}
	}
	md[fieldPushback] = []string{s.pushbackOf(ctx, v)}
	return md
}

// ietf are the fields of draft-ietf-httpapi-ratelimit-headers.
func ietf(v *verdict) metadata.MD {
	limit := v.limit.limiter.Limit(v.key)
	var room [192]byte
	b := fields.AppendRateLimit(room[:0], v.limit.quoted, limit, &v.result)
	i := len(b)
	text := string(fields.AppendPolicy(b, v.limit.quoted, limit))
	values := []string{text[:i], text[i:]}
	return metadata.MD{fieldRateLimit: values[0:1:1], fieldPolicy: values[1:2:2]}
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
