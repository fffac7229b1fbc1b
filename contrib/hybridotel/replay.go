package hybridotel

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/metric"

	"github.com/hybridlimit/hybrid"
)

// replay records what a node has counted in a histogram of its own into one of the
// meter: value by value, as the API wants it. The package comment says why.
type replay struct {
	into metric.Float64Histogram
	with []metric.RecordOption
	told hybrid.Histogram // what has been recorded, or was there before
}

// mostRecords is how many values one reading records. A node makes up to some
// thousand calls a second, and a value takes about a tenth of a microsecond: after a
// long time without a reader the rest follows with the next readings.
const mostRecords = 1 << 20

func newReplay(into metric.Float64Histogram, with metric.RecordOption, before hybrid.Histogram) *replay {
	before.Counts = slices.Clone(before.Counts)
	return &replay{into: into, with: []metric.RecordOption{with}, told: before}
}

// tell records what has come since it was last told.
func (r *replay) tell(ctx context.Context, now hybrid.Histogram) {
	come := make([]uint64, len(now.Counts))
	for i, n := range now.Counts {
		come[i] = n - r.told.Counts[i]
	}
	values := spread(now.Bounds, come, now.Sum-r.told.Sum)
	left := uint64(mostRecords)
	for i, n := range come {
		n = min(n, left)
		left -= n
		for range n {
			r.into.Record(ctx, values[i], r.with...)
		}
		r.told.Counts[i] += n
		r.told.Sum += float64(n) * values[i]
	}
}

// nearest is how near to its lower bound a value may be, as a part of its bucket: the
// bound itself belongs to the bucket below.
const nearest = 1e-6

// spread places one value in each bucket, so that the values of all that have come
// add up to a sum: all at the same part of their buckets or, where some have come
// into the last one, which has no end, the others in the middle at most and those
// where the sum wants them. A sum that is impossible, because it was read a moment
// before or after the counts, is met as nearly as can be; the next one makes up for it.
func spread(bounds []float64, come []uint64, sum float64) []float64 {
	last := len(bounds)
	beyond, end := float64(come[last]), lowerBound(bounds, last)
	least, room := 0.0, 0.0 // the sum if all below the end are at their lower bounds; what it may be more
	for i, upper := range bounds {
		lower, n := lowerBound(bounds, i), float64(come[i])
		least += n * lower
		room += n * (upper - lower)
	}
	part := 0.5
	if room > 0 {
		part = (sum - least - beyond*end) / room
		if beyond > 0 {
			part = min(part, 0.5)
		}
		part = min(max(part, nearest), 1)
	}
	values := make([]float64, last+1)
	for i, upper := range bounds {
		lower := lowerBound(bounds, i)
		values[i] = min(lower+part*(upper-lower), upper)
	}
	if beyond > 0 {
		values[last] = max((sum-least-part*room)/beyond, end*(1+nearest))
	}
	return values
}

// lowerBound returns the lower bound of a bucket: nothing that is counted is below 0.
func lowerBound(bounds []float64, i int) float64 {
	if i == 0 {
		return 0
	}
	return bounds[i-1]
}
