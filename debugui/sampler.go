package debugui

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hybridlimit/hybrid"
)

const (
	interval = time.Second     // between two looks at the node, whoever asks
	keptFor  = 2 * time.Minute // of looks
)

// sampler looks at a node for all viewers together. It looks only when one of
// them asks and the last look is a second old: it has no goroutine, and while
// nobody looks it costs nothing.
type sampler struct {
	look  func() sample
	build func(history) *report

	mu     sync.Mutex
	kept   history
	latest *report
}

// sample is one look at the node. It is never changed.
type sample struct {
	at       time.Time
	stats    hybrid.Stats
	limiters []limiterInfo // that are open, by name
	denied   []denial      // those that are denied most; only of the latest sample
}

// limiterInfo is what a limiter is, besides what it has done.
type limiterInfo struct {
	name      string
	limit     hybrid.Limit
	accuracy  hybrid.Accuracy
	onFailure hybrid.FailurePolicy
	shadow    bool
	same      *hybrid.Limiter // tells it from an earlier one of the same name
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
		s.kept = s.kept.with(s.look(), now.Add(-keptFor))
		s.latest = s.build(s.kept)
	}
	r := *s.latest
	r.Next = number(max(interval-now.Sub(r.at), 0).Seconds())
	return r
}

// history is the looks that are kept, the oldest first.
type history []sample

// with adds a look, and forgets those before a moment.
func (h history) with(one sample, oldest time.Time) history {
	var kept history // a new one, so that what is forgotten is free
	for _, s := range h {
		if !s.at.Before(oldest) {
			s.denied = nil
			kept = append(kept, s)
		}
	}
	return append(kept, one)
}

func (h history) last() *sample { return &h[len(h)-1] }

// over returns what happened in the last d, or since the look before the last if
// that is longer ago.
func (h history) over(d time.Duration) window {
	to := h.last()
	from := to
	for i := len(h) - 2; i >= 0; i-- {
		if from != to && to.at.Sub(h[i].at) > d {
			break
		}
		from = &h[i]
	}
	return window{from, to}
}

// steps returns what happened between each two looks.
func (h history) steps() []window {
	var all []window
	for i := 1; i < len(h); i++ {
		all = append(all, window{&h[i-1], &h[i]})
	}
	return all
}

// window is what happened between two looks. With a first look alone it is empty,
// and no rate is known.
type window struct{ from, to *sample }

func (w window) seconds() float64 { return w.to.at.Sub(w.from.at).Seconds() }

func (w window) empty() bool { return w.from == w.to }

// counter picks a count of a limiter.
type counter func(*hybrid.LimiterStats) uint64

// both returns a limiter's counters at both ends. Those of one that was made
// meanwhile began at 0.
func (w window) both(name string) (from, to hybrid.LimiterStats) {
	to = w.to.stats.Limiters[name]
	if w.to.limiter(name) == w.from.limiter(name) {
		from = w.from.stats.Limiters[name]
	}
	return from, to
}

// of returns how much a limiter's counter grew.
func (w window) of(name string, c counter) uint64 {
	from, to := w.both(name)
	return grown(c(&from), c(&to))
}

// all returns how much a counter grew, of all limiters together. That of a
// limiter that was closed meanwhile is lost.
func (w window) all(c counter) (n uint64) {
	for name := range w.to.stats.Limiters {
		n += w.of(name, c)
	}
	return n
}

// node returns how much a count of the node grew.
func (w window) node(c func(*hybrid.Stats) uint64) uint64 {
	return grown(c(&w.from.stats), c(&w.to.stats))
}

// perSecond makes a rate of what grew.
func (w window) perSecond(n uint64) float64 { return ratio(float64(n), w.seconds()) }

func grown(from, to uint64) uint64 {
	if to < from {
		return to // it began again
	}
	return to - from
}

// limiter tells a limiter from an earlier one of its name; nil if it was not there.
func (s *sample) limiter(name string) *hybrid.Limiter {
	i, ok := slices.BinarySearchFunc(s.limiters, name, func(l limiterInfo, name string) int { return strings.Compare(l.name, name) })
	if !ok {
		return nil
	}
	return s.limiters[i].same
}
