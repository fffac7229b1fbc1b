package debugui

import (
	"sync"
	"time"
	"weak"

	"github.com/hybridlimit/hybrid"
)

const (
	interval = time.Second     // between two looks at the node, whoever asks
	keptFor  = 2 * time.Minute // of looks
)

// sampler looks at a node for all viewers together. It looks only when one of
// them asks and the last look is a second old: it has no goroutine, and while
// nobody looks it costs nothing. What it keeps goes when nobody has looked for keptFor.
type sampler struct {
	look   func(past history) sample
	build  func(history) *report
	forget func() // what else is kept for viewers

	mu     sync.Mutex
	kept   history
	latest *report
	asked  time.Time   // when somebody last looked
	idle   *time.Timer // ends what is kept; nil while nothing is
}

// sample is one look at the node. It is never changed, but for being thinned.
type sample struct {
	at       time.Time
	stats    hybrid.Stats
	limiters []limiterInfo       // that are open, by name
	denied   []denial            // those that are denied most; only of the latest sample
	sum      hybrid.LimiterStats // how much the counters of all limiters have grown since the first look
	thinned  bool                // it has counts of some limiters only
}

// limiterInfo is what a limiter is, besides what it has done.
type limiterInfo struct {
	name      string
	limit     hybrid.Limit
	accuracy  hybrid.Accuracy
	onFailure hybrid.FailurePolicy
	shadow    bool
	same      weak.Pointer[hybrid.Limiter] // tells it from an earlier one of the same name, and keeps neither
}

// denial is a key that is denied.
type denial struct {
	limiter string
	hybrid.KeyDenials
}

// current returns the latest report, after a look if it is old.
func (s *sampler) current() report {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.latest == nil || now.Sub(s.latest.at) >= interval {
		s.kept = s.kept.with(s.look(s.kept), now.Add(-keptFor))
		s.latest = s.build(s.kept)
	}
	s.asked = now
	if s.idle == nil {
		s.idle = time.AfterFunc(keptFor, s.leave)
	} else {
		s.idle.Reset(keptFor)
	}
	r := *s.latest
	r.Next = number(max(interval-now.Sub(r.at), 0).Seconds())
	return r
}

// leave frees what was kept, unless somebody has looked just now.
func (s *sampler) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asked) < keptFor {
		return // the timer is set again
	}
	s.kept, s.latest, s.idle = nil, nil, nil
	s.forget()
}
