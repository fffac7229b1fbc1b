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

// mostPolicies bounds them. Of a LimitFor that makes up a limit for each key the rest
// are written anew each time.
const mostPolicies = 256

// text returns the text of a limit's policy; ok is false if it is one more than are
// kept. Only a limit that is to be kept takes the lock.
func (p *policies) text(quoted string, l hybrid.Limit) (text string, ok bool) {
	if known := p.known.Load(); known != nil {
		if text, ok = (*known)[l]; ok || len(*known) >= mostPolicies {
			return text, ok
		}
	}
	return p.keep(quoted, l)
}

// keep is text of a limit that was not seen before.
func (p *policies) keep(quoted string, l hybrid.Limit) (text string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := map[hybrid.Limit]string{}
	if known := p.known.Load(); known != nil {
		if text, ok = (*known)[l]; ok || len(*known) >= mostPolicies { // others were first
			return text, ok
		}
		maps.Copy(next, *known)
	}
	text = string(fields.AppendPolicy(nil, quoted, l))
	next[l] = text
	p.known.Store(&next)
	return text, true
}
