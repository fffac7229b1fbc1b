package hybridotel

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"

	"github.com/hybridlimit/hybrid"
)

// bucketOf is the bucket of a value, as the node and the SDK see it.
func bucketOf(bounds []float64, v float64) int {
	i, _ := slices.BinarySearch(bounds, v)
	return i
}

// Whatever the values were, those that stand for them are in the same buckets and have
// the same sum.
func TestSpreadKeepsBucketsAndSum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 5000 {
		bounds := make([]float64, 1+rnd.IntN(12))
		edge := 0.0
		for i := range bounds {
			edge += rnd.ExpFloat64() + 1e-3
			bounds[i] = edge
		}
		come, sum := make([]uint64, len(bounds)+1), 0.0
		for range rnd.IntN(30) {
			v := edge * rnd.ExpFloat64()
			switch rnd.IntN(4) {
			case 0:
				v = bounds[rnd.IntN(len(bounds))] // a bound belongs to the bucket that it ends
			case 1:
				v = edge * rnd.Float64()
			}
			come[bucketOf(bounds, v)]++
			sum += v
		}
		got := 0.0
		for i, v := range spread(bounds, come, sum) {
			if come[i] > 0 && bucketOf(bounds, v) != i {
				t.Fatalf("round %d: %v is not in bucket %d of %v", round, v, i, bounds)
			}
			got += float64(come[i]) * v
		}
		if math.Abs(got-sum) > 1e-4*sum {
			t.Fatalf("round %d: the sum is %v, want %v: %v in %v", round, got, sum, come, bounds)
		}
	}
}

// recorder is a histogram that keeps what it is told.
type recorder struct {
	embedded.Float64Histogram
	counts []uint64
	sum    float64
	bounds []float64
}

func (r *recorder) Record(_ context.Context, v float64, _ ...metric.RecordOption) {
	r.counts[bucketOf(r.bounds, v)]++
	r.sum += v
}

func (r *recorder) Enabled(context.Context) bool { return true }

// After a long time without a reader there are more values than one reading may take:
// the rest follows, and nothing is lost.
func TestReplayIsBounded(t *testing.T) {
	bounds := []float64{1, 2}
	rec := &recorder{counts: make([]uint64, 3), bounds: bounds}
	r := newReplay(rec, withAttributes(nil), hybrid.Histogram{Bounds: bounds, Counts: []uint64{5, 5, 5}, Sum: 40})
	now := hybrid.Histogram{Bounds: bounds, Counts: []uint64{5 + mostRecords, 5 + 100, 5 + 7}, Sum: 40 + mostRecords*0.25 + 150 + 70}
	r.tell(context.Background(), now)
	if !slices.Equal(rec.counts, []uint64{mostRecords, 0, 0}) {
		t.Errorf("one reading recorded %v", rec.counts)
	}
	r.tell(context.Background(), now)
	r.tell(context.Background(), now)
	if want := mostRecords*0.25 + 150 + 70; !slices.Equal(rec.counts, []uint64{mostRecords, 100, 7}) || math.Abs(rec.sum-want) > 1e-4*want {
		t.Errorf("recorded %v of sum %v, want a sum of %v", rec.counts, rec.sum, want)
	}
}
