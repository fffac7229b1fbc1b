package fields

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
)

// XRateLimit are the values of X-RateLimit-Limit, -Remaining and -Reset, the last one
// in seconds from now, or as the Unix time. They are parts of one string.
func XRateLimit(r *hybrid.Result, epoch bool) []string {
	reset := WholeSeconds(UntilReset(r))
	if epoch {
		reset = unixAfter(time.Now(), UntilReset(r))
	}
	var room [3 * len("-9223372036854775808")]byte
	b := strconv.AppendInt(room[:0], r.Limit, 10)
	i := len(b)
	b = strconv.AppendInt(b, r.Remaining, 10)
	j := len(b)
	b = strconv.AppendInt(b, reset, 10)
	s := string(b)
	return []string{s[:i], s[i:j], s[j:]}
}

// AppendRateLimit writes an item of the RateLimit field of
// draft-ietf-httpapi-ratelimit-headers, for a limit whose name is quoted already.
func AppendRateLimit(b []byte, quoted string, l hybrid.Limit, r *hybrid.Result) []byte {
	b = append(b, quoted...)
	b = append(b, ";r="...)
	b = appendInteger(b, r.Remaining)
	if t, ok := effectiveWindow(l, r); ok {
		b = append(b, ";t="...)
		b = appendInteger(b, t)
	}
	return b
}

// AppendPolicy writes a limit as an item of RateLimit-Policy. Its window is in whole
// seconds; the quota is what the limit gives in as many, rounded down.
func AppendPolicy(b []byte, quoted string, l hybrid.Limit) []byte {
	w := max(1, WholeSeconds(l.Period()))
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

// Quote returns s as a String of a structured field; false if it holds what such a
// string cannot.
func Quote(s string) (string, bool) {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return "", false
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String(), true
}
