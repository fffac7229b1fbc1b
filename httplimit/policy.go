package httplimit

import (
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hybridlimit/hybrid"
)

// maxInteger is the largest Integer of a structured field (RFC 9651, 3.3.1).
// Limits may be larger.
const maxInteger = 999_999_999_999_999

func appendInteger(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(max(n, 0), maxInteger), 10)
}

// quote returns s as a String of a structured field; false if it holds what
// such a string cannot.
func quote(s string) (string, bool) {
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

// policies are the texts of the policies that a limit was seen to have: one,
// or one per tier.
type policies struct {
	known atomic.Pointer[map[hybrid.Limit]string] // never changed once it is stored; nil: none yet
	mu    sync.Mutex                              // of whoever stores the next one
}

// mostPolicies bounds them. A LimitFor that makes up a limit for each key gets
// the rest written anew each time.
const mostPolicies = 256

func (p *policies) text(quoted string, l hybrid.Limit) string {
	known := p.known.Load()
	if known != nil {
		if text, ok := (*known)[l]; ok {
			return text
		}
	}
	text := policy(quoted, l)
	p.mu.Lock()
	defer p.mu.Unlock()
	next := map[hybrid.Limit]string{l: text}
	if known = p.known.Load(); known != nil {
		if len(*known) >= mostPolicies {
			return text
		}
		maps.Copy(next, *known)
	}
	p.known.Store(&next)
	return text
}

// policy writes a limit as an item of RateLimit-Policy. Its window is in whole
// seconds; the quota is what the limit gives in as many, rounded down.
func policy(quoted string, l hybrid.Limit) string {
	w := max(1, wholeSeconds(l.Period()))
	q := l.Count()
	if l.Period() != time.Duration(w)*time.Second {
		q = int64(math.Min(float64(q)*float64(w)/l.Period().Seconds(), maxInteger))
	}
	b := append([]byte(quoted), ";q="...)
	b = appendInteger(b, q)
	b = append(b, ";w="...)
	return string(appendInteger(b, w))
}
