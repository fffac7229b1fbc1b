package httplimit

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/fields"
)

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
	text := string(fields.AppendPolicy(nil, quoted, l))
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
