package hybridotel

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/hybridlimit/hybrid"
)

// A reading looks at all keys: it is made once a second, however many ask.
func TestStatsAreReadOnceASecond(t *testing.T) {
	inBubble(t, func(w *world) {
		r, _ := register(t, w.node)
		api := w.limiter("api", hybrid.PerMinute(600), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		const point = "requests{limiter=api,path=exact,result=allowed}"
		w.ask(api, "k", 1, 0)
		got := r.read() // the first one does not wait for a second to pass
		got.want(point, 1)
		w.ask(api, "k", 1, fresh/2)
		got = r.read()
		got.want(point, 1)
		time.Sleep(fresh / 2)
		got = r.read()
		got.want(point, 2)
	})
}

// Histograms are those of the node, bucket by bucket, for each reader in its own
// temporality.
func TestHistogramsAreTheNodes(t *testing.T) {
	inBubble(t, func(w *world) {
		provider, readers := newProvider(t, metricdata.CumulativeTemporality, metricdata.DeltaTemporality)
		if _, err := Register(w.node, &Options{MeterProvider: provider}); err != nil {
			t.Fatal(err)
		}
		api := w.limiter("api", hybrid.PerMinute(600), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		var calls, operations uint64 // as the second reader adds them up
		for _, delay := range []time.Duration{300 * time.Microsecond, 3 * time.Millisecond, 40 * time.Millisecond, 2 * time.Second} {
			w.link.RTT(func() time.Duration { return delay })
			w.ask(api, "k", 30, 100*time.Millisecond)
			for range 2 {
				delta := readers[1].read()
				calls += delta.histograms["store.call.duration"].Count
				operations += uint64(math.Round(delta.histograms["store.call.operations"].Sum))
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		got, st := readers[0].read(), w.node.Stats()
		sameHistogram(t, got.histograms["store.call.duration"], st.CallTime)
		sameHistogram(t, got.histograms["store.call.operations"], st.BatchSize)
		delta := readers[1].read()
		calls += delta.histograms["store.call.duration"].Count
		operations += uint64(math.Round(delta.histograms["store.call.operations"].Sum))
		if calls != st.CallTime.Count() || float64(operations) != st.BatchSize.Sum {
			t.Errorf("%d calls and %d operations in all differences, want %d and %v", calls, operations, st.CallTime.Count(), st.BatchSize.Sum)
		}
	})
}

func sameHistogram(t *testing.T, got metricdata.HistogramDataPoint[float64], want hybrid.Histogram) {
	t.Helper()
	if !slices.Equal(got.Bounds, want.Bounds) || !slices.Equal(got.BucketCounts, want.Counts) || math.Abs(got.Sum-want.Sum) > 1e-9*want.Sum {
		t.Errorf("got %v of sum %v in %v\nwant %v of sum %v in %v", got.BucketCounts, got.Sum, got.Bounds, want.Counts, want.Sum, want.Bounds)
	}
	if want.Count() < 10 {
		t.Errorf("only %d values: the story is too short", want.Count())
	}
}

// What came before Register is not in the histograms: they would take long to be told
// of a week.
func TestHistogramsBeginWithRegister(t *testing.T) {
	inBubble(t, func(w *world) {
		api := w.limiter("api", hybrid.PerMinute(600), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
		w.ask(api, "k", 50, 10*time.Millisecond)
		synctest.Wait()
		before := w.node.Stats()
		r, _ := register(t, w.node)
		w.ask(api, "k", 50, 10*time.Millisecond)
		synctest.Wait()
		got, after := r.read(), w.node.Stats()
		if n, want := got.histograms["store.call.duration"].Count, after.CallTime.Count()-before.CallTime.Count(); n != want || n < 10 {
			t.Errorf("%d calls, want %d", n, want)
		}
		got.want("store.calls", float64(after.Calls))
	})
}

// A limiter that is closed and made again begins anew. Its counters do not fall:
// differences would be negative.
func TestCountersDoNotFall(t *testing.T) {
	inBubble(t, func(w *world) {
		provider, readers := newProvider(t, metricdata.CumulativeTemporality, metricdata.DeltaTemporality)
		if _, err := Register(w.node, &Options{MeterProvider: provider}); err != nil {
			t.Fatal(err)
		}
		exact := &hybrid.LimiterOptions{Accuracy: hybrid.Exact}
		const point = "requests{limiter=api,path=exact,result=allowed}"
		api := w.limiter("api", hybrid.PerMinute(600), exact)
		w.ask(api, "k", 30, 0)
		got, delta := readers[0].read(), readers[1].read()
		got.want(point, 30)
		delta.want(point, 30)

		if err := api.Close(); err != nil {
			t.Fatal(err)
		}
		api = w.limiter("api", hybrid.PerMinute(600), exact)
		w.ask(api, "k", 4, fresh)
		got, delta = readers[0].read(), readers[1].read()
		got.want(point, 34)
		delta.want(point, 4)

		if err := api.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(fresh)
		got = readers[0].read()
		if n, there := got.numbers[point]; there {
			t.Errorf("a limiter that is closed shows %v", n)
		}
		w.ask(w.limiter("api", hybrid.PerMinute(600), exact), "k", 2, fresh)
		got = readers[0].read() // it was gone, and its series with it
		got.want(point, 2)
	})
}
