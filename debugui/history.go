package debugui

import (
	"slices"
	"strings"
	"time"
	"weak"

	"github.com/hybridlimit/hybrid"
)

// history is the looks that are kept, the oldest first.
type history []sample

// with adds a look, forgets those before a moment, and thins out those that no rate of
// now needs.
func (h history) with(one sample, oldest time.Time) history {
	var kept history // a new one, so that what is forgotten is free
	for _, s := range h {
		if !s.at.Before(oldest) {
			s.denied = nil
			kept = append(kept, s)
		}
	}
	if len(h) > 0 {
		one.sum = summed(window{h.last(), &one})
	}
	kept = append(kept, one)
	kept.thin()
	return kept
}

// mostKept is of how many limiters there is a history. A look at 10,000 limiters takes
// 3 MB, and there are up to 121.
const mostKept = 4 * mostCharts

// thin leaves of older looks the counts of the limiters that decide most. The look before
// the last stays whole, however old it is: rates of now may be from there.
func (h history) thin() {
	var keep map[string]bool
	for i := range h[:max(len(h)-2, 0)] {
		s := &h[i]
		if s.thinned || len(s.stats.Limiters) <= mostKept || h.last().at.Sub(s.at) <= ratesOf {
			continue
		}
		if keep == nil {
			keep = busiest(h, mostKept)
		}
		s.reduce(keep)
	}
}

// reduce forgets all limiters but some.
func (s *sample) reduce(keep map[string]bool) {
	all := s.stats.Limiters
	s.thinned, s.stats.Limiters = true, make(map[string]hybrid.LimiterStats, len(keep))
	for name := range keep {
		if st, ok := all[name]; ok {
			s.stats.Limiters[name] = st
		}
	}
	var some []limiterInfo // a new list, so that the old one is free
	for _, l := range s.limiters {
		if keep[l.name] {
			some = append(some, l)
		}
	}
	s.limiters = some
}

// knows reports whether a look can tell a limiter's counts.
func (s *sample) knows(name string) bool {
	if !s.thinned {
		return true // where it has none, there was no such limiter
	}
	_, ok := s.stats.Limiters[name]
	return ok
}

func (h history) last() *sample { return &h[len(h)-1] }

// over returns what happened in the last d, or since the look before the last if
// that is longer ago.
func (h history) over(d time.Duration) window {
	return h.since(d, func(*sample) bool { return true })
}

// of is over, of one limiter: as far back as its counts are known.
func (h history) of(name string, d time.Duration) window {
	return h.since(d, func(s *sample) bool { return s.knows(name) })
}

func (h history) since(d time.Duration, usable func(*sample) bool) window {
	to := h.last()
	from := to
	for i := len(h) - 2; i >= 0; i-- {
		if from != to && to.at.Sub(h[i].at) > d {
			break
		}
		if usable(&h[i]) {
			from = &h[i]
		}
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
// meanwhile began at 0. Of one that is not known at the first end, nothing grew.
func (w window) both(name string) (from, to hybrid.LimiterStats) {
	to = w.to.stats.Limiters[name]
	switch {
	case !w.from.knows(name):
		from = to
	case w.to.limiter(name) == w.from.limiter(name):
		from = w.from.stats.Limiters[name]
	}
	return from, to
}

// of returns how much a limiter's counter grew.
func (w window) of(name string, c counter) uint64 {
	from, to := w.both(name)
	return grown(c(&from), c(&to))
}

// all returns how much a counter grew, of all limiters together. Of a limiter that was
// closed, what it did after the last look at it is lost.
func (w window) all(c counter) uint64 { return grown(c(&w.from.sum), c(&w.to.sum)) }

// summed adds what grew between two looks, the one after the other, to the sum of the first.
func summed(w window) hybrid.LimiterStats {
	sum := w.from.sum
	for name := range w.to.stats.Limiters {
		from, to := w.both(name)
		for _, field := range summable {
			*field(&sum) += grown(*field(&from), *field(&to))
		}
	}
	return sum
}

// summable are the counters of a limiter.
var summable = []func(*hybrid.LimiterStats) *uint64{
	func(s *hybrid.LimiterStats) *uint64 { return &s.SliceTokens },
	func(s *hybrid.LimiterStats) *uint64 { return &s.FloorAllowed },
	func(s *hybrid.LimiterStats) *uint64 { return &s.ExactAllowed },
	func(s *hybrid.LimiterStats) *uint64 { return &s.ExactDenied },
	func(s *hybrid.LimiterStats) *uint64 { return &s.MemoDenied },
	func(s *hybrid.LimiterStats) *uint64 { return &s.FallbackAllowed },
	func(s *hybrid.LimiterStats) *uint64 { return &s.FallbackDenied },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Shadowed },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Blocked },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Operations },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Granted },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Recalled },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Returned },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Expired },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Dropped },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Rebuilt },
	func(s *hybrid.LimiterStats) *uint64 { return &s.NotRun },
	func(s *hybrid.LimiterStats) *uint64 { return &s.Unknown },
	func(s *hybrid.LimiterStats) *uint64 { return &s.InvalidTiers },
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

// limiter tells a limiter from an earlier one of its name; zero if it was not there.
func (s *sample) limiter(name string) (same weak.Pointer[hybrid.Limiter]) {
	i, ok := slices.BinarySearchFunc(s.limiters, name, func(l limiterInfo, name string) int { return strings.Compare(l.name, name) })
	if ok {
		same = s.limiters[i].same
	}
	return same
}
