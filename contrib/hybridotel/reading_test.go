package hybridotel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/hybridlimit/hybrid"
)

// reader is a reader of metrics that is asked by hand.
type reader struct {
	t      *testing.T
	manual *sdk.ManualReader
}

// newProvider makes a MeterProvider with as many readers as there are temporalities.
func newProvider(t *testing.T, each ...metricdata.Temporality) (*sdk.MeterProvider, []*reader) {
	var readers []*reader
	var opts []sdk.Option
	for _, temporality := range each {
		manual := sdk.NewManualReader(sdk.WithTemporalitySelector(func(sdk.InstrumentKind) metricdata.Temporality { return temporality }))
		readers = append(readers, &reader{t, manual})
		opts = append(opts, sdk.WithReader(manual))
	}
	return sdk.NewMeterProvider(opts...), readers
}

// register registers a node with a fresh MeterProvider of one reader.
func register(t *testing.T, node *hybrid.Node, attrs ...attribute.KeyValue) (*reader, metric.Registration) {
	t.Helper()
	provider, readers := newProvider(t, metricdata.CumulativeTemporality)
	reg, err := Register(node, &Options{MeterProvider: provider, Attributes: attrs})
	if err != nil {
		t.Fatal(err)
	}
	return readers[0], reg
}

// reading is all data points of one collection, by instrument and attributes without
// their prefixes: "requests{limiter=api,path=exact,result=denied}".
type reading struct {
	t          *testing.T
	metrics    map[string]metricdata.Metrics // by full name
	numbers    map[string]float64
	histograms map[string]metricdata.HistogramDataPoint[float64]
}

func (r *reader) read() reading {
	r.t.Helper()
	got := reading{r.t, map[string]metricdata.Metrics{}, map[string]float64{}, map[string]metricdata.HistogramDataPoint[float64]{}}
	var all metricdata.ResourceMetrics
	if err := r.manual.Collect(context.Background(), &all); err != nil {
		r.t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != Scope {
			r.t.Errorf("a scope %q", scope.Scope.Name)
		}
		for _, m := range scope.Metrics {
			got.metrics[m.Name] = m
			got.add(strings.TrimPrefix(m.Name, prefix), m.Data)
		}
	}
	return got
}

func (r *reading) add(name string, data metricdata.Aggregation) {
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			r.numbers[pointName(name, p.Attributes)] = float64(p.Value)
		}
	case metricdata.Gauge[int64]:
		for _, p := range d.DataPoints {
			r.numbers[pointName(name, p.Attributes)] = float64(p.Value)
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			r.numbers[pointName(name, p.Attributes)] = p.Value
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			r.histograms[pointName(name, p.Attributes)] = p
		}
	default:
		r.t.Errorf("%s is a %T", name, data)
	}
}

func pointName(name string, attrs attribute.Set) string {
	if attrs.Len() == 0 {
		return name
	}
	var words []string
	for _, kv := range attrs.ToSlice() { // sorted
		words = append(words, fmt.Sprintf("%s=%s", strings.TrimPrefix(string(kv.Key), prefix), kv.Value.String()))
	}
	return name + "{" + strings.Join(words, ",") + "}"
}

// number is the value of a data point that must be there.
func (r *reading) number(point string) float64 {
	r.t.Helper()
	v, ok := r.numbers[point]
	if !ok {
		r.t.Fatalf("there is no %s in %v", point, r.numbers)
	}
	return v
}

func (r *reading) want(point string, want float64) {
	r.t.Helper()
	if got := r.number(point); got != want {
		r.t.Errorf("%s is %v, want %v", point, got, want)
	}
}

// wantMore fails the test unless a value is above another one.
func (r *reading) wantMore(point string, than float64) {
	r.t.Helper()
	if got := r.number(point); got <= than {
		r.t.Errorf("%s is %v, want more than %v", point, got, than)
	}
}

// sum adds up the data points of an instrument.
func (r *reading) sum(name string) (sum float64) {
	for point, v := range r.numbers {
		if before, _, _ := strings.Cut(point, "{"); before == name {
			sum += v
		}
	}
	return sum
}
