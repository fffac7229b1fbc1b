package flame

import (
	"cmp"
	"slices"
)

// Part is what of a profile is somebody's doing.
type Part struct {
	Name  string
	Share float64
}

// Parts says on whose behalf the samples are: that of the innermost function of the
// limiter, the client or the load. What the runtime does for nobody in
// particular is the garbage collector's or the scheduler's.
func (p *Profile) Parts() []Part {
	sum := make([]int64, len(kinds))
	for _, s := range p.samples {
		sum[s.behalf()] += s.value
	}
	var parts []Part
	for k, value := range sum {
		if value > 0 {
			parts = append(parts, Part{kinds[k].name, float64(value) / float64(p.total)})
		}
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Share, a.Share) })
	return parts
}

func (s sample) behalf() kind {
	found := scheduler
	for _, name := range slices.Backward(s.stack) {
		switch k := kindOf(name); k {
		case limiter, client, load, collector:
			return k // in the collector: its workers, and who must help it is not to blame
		case other:
			found = other // a library: whoever calls it is below
		}
	}
	return found
}
