package debugui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
)

const (
	mostListed  = 20 // keys that are listed
	alwaysFirst = 3  // of each limiter: a loud one does not hide a quiet one
	mostAlways  = 60 // of those, whatever number of limiters there are
)

// lookAt looks at a node. It costs as much as Node.Stats, twice: both look at
// every key that is in touch with Redis.
func lookAt(node *hybrid.Node) sample {
	s := sample{stats: node.Stats()}
	var lists [][]hybrid.KeyDenials
	for _, l := range node.Limiters() {
		s.limiters = append(s.limiters, limiterInfo{
			name:      l.Name(),
			limit:     l.OwnLimit(),
			accuracy:  l.Accuracy(),
			onFailure: l.OnFailure(),
			shadow:    l.Shadow(),
			same:      l,
		})
		// The node counts denials per key anyway, for the keys that it is in touch
		// with, and every key that is denied is. So these counts are exact, and picking
		// the largest takes no more than their list: a sketch of the stream, which
		// guesses what it does not count, would only cost the hot path.
		lists = append(lists, l.Denied(mostListed))
	}
	s.denied = merge(s.limiters, lists)
	s.at = time.Now()
	return s
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
