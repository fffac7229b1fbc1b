package debugui

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"weak"

	"github.com/hybridlimit/hybrid"
)

const (
	mostListed  = 20 // keys that are listed
	alwaysFirst = 3  // of each limiter: a loud one does not hide a quiet one
	mostAlways  = 60 // of those, whatever number of limiters there are
	mostAsked   = 24 // limiters whose denied keys are looked for
)

// lookAt looks at a node. Node.Stats looks at every key that is in touch with Redis, and
// Limiter.Denied does so again, for each limiter that is asked.
func lookAt(node *hybrid.Node, past history) sample {
	s := sample{stats: node.Stats()}
	open := node.Limiters()
	for _, l := range open {
		s.limiters = append(s.limiters, limiterInfo{
			name:      l.Name(),
			limit:     l.OwnLimit(),
			accuracy:  l.Accuracy(),
			onFailure: l.OnFailure(),
			shadow:    l.Shadow(),
			same:      weak.Make(l),
		})
	}
	s.passShadows()
	loud := loudest(&s, past, mostAsked)
	var lists [][]hybrid.KeyDenials
	for _, l := range open {
		var list []hybrid.KeyDenials
		if loud[l.Name()] {
			// The node counts denials per key anyway, for the keys that it is in touch
			// with, and every key that is denied is. So these counts are exact, and picking
			// the largest takes no more than their list: a sketch of the stream, which
			// guesses what it does not count, would only cost the hot path.
			list = l.Denied(mostListed)
		}
		lists = append(lists, list)
	}
	s.denied = merge(s.limiters, lists)
	s.at = time.Now()
	return s
}

// passShadows makes what a limiter in shadow mode denied equal to what it let pass. The
// node counts them at different moments, and a page that says both would deny some.
func (s *sample) passShadows() {
	for i := range s.limiters {
		if st, ok := s.stats.Limiters[s.limiters[i].name]; ok && s.limiters[i].shadow {
			st.Shadowed = denied(&st)
			s.stats.Limiters[s.limiters[i].name] = st
		}
	}
}

// loudest returns the limiters that denied most since a look some seconds ago.
func loudest(s *sample, past history, most int) map[string]bool {
	from := &sample{}
	if len(past) > 0 {
		from = past.over(ratesOf).from
	}
	w := window{from, s}
	return largest(s.limiters, most, func(l *limiterInfo) float64 { return float64(w.of(l.name, denied)) })
}

// largest returns the names of those limiters that have most of something.
func largest(limiters []limiterInfo, most int, what func(*limiterInfo) float64) map[string]bool {
	type measured struct {
		name string
		size float64
	}
	list := make([]measured, len(limiters))
	for i := range limiters {
		list[i].name = limiters[i].name
		if len(list) > most { // else all of them
			list[i].size = what(&limiters[i])
		}
	}
	slices.SortStableFunc(list, func(a, b measured) int { return cmp.Compare(b.size, a.size) })
	names := make(map[string]bool)
	for _, l := range list[:min(len(list), most)] {
		names[l.name] = true
	}
	return names
}

// merge picks the keys to list from those of each limiter, which come in order.
func merge(limiters []limiterInfo, lists [][]hybrid.KeyDenials) []denial {
	var first, more []denial
	for i, list := range lists {
		for rank, k := range list {
			d := denial{limiters[i].name, k}
			if rank < alwaysFirst {
				first = append(first, d)
			} else {
				more = append(more, d)
			}
		}
	}
	slices.SortFunc(first, byRate)
	slices.SortFunc(more, byRate)
	first = first[:min(len(first), mostAlways)]
	more = more[:min(len(more), max(mostListed-len(first), 0))]
	all := append(first, more...)
	slices.SortFunc(all, byRate)
	return all
}

func byRate(a, b denial) int {
	return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.limiter, b.limiter), strings.Compare(a.Key, b.Key))
}
