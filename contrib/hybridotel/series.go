package hybridotel

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/hybridlimit/hybrid"
)

// prefix is the namespace of the metrics and of the attributes.
const prefix = "hybrid.rate_limiting."

const (
	keyLimiter    = attribute.Key(prefix + "limiter")
	keyResult     = attribute.Key(prefix + "result")
	keyPath       = attribute.Key(prefix + "path")
	keyOutcome    = attribute.Key(prefix + "outcome")
	keyRemaining  = attribute.Key(prefix + "remaining")
	keyRetryAfter = attribute.Key(prefix + "retry_after")
	keyShadowed   = attribute.Key(prefix + "shadowed")
	keyCause      = attribute.Key("error.type") // of the semantic conventions
)

// kind is what may be done with a number.
type kind uint8

const (
	counter kind = iota // never falls
	upDown              // may be summed up over nodes
	gauge               // may not: all nodes tell of one thing
)

// whole is a series of whole numbers, read from an S. Series of one name are
// data points of one instrument.
type whole[S any] struct {
	kind              kind
	name, unit, about string
	attrs             []attribute.KeyValue
	value             func(*S) int64
}

// part is a gauge of a number that is not whole, read from an S.
type part[S any] struct {
	name, unit, about string
	value             func(*S) float64
}

// family is all series that are read from an S, with their instruments in the
// same order.
type family[S any] struct {
	wholes []whole[S]
	parts  []part[S]
	ints   []metric.Int64Observable
	floats []metric.Float64Observable
}

func newFamily[S any](m *maker, wholes []whole[S], parts []part[S]) *family[S] {
	f := &family[S]{wholes: wholes, parts: parts}
	for _, w := range wholes {
		f.ints = append(f.ints, m.whole(w.kind, w.name, w.unit, w.about))
	}
	for _, p := range parts {
		f.floats = append(f.floats, m.part(p.name, p.unit, p.about))
	}
	return f
}

// points are the data points of a family for one S: a limiter, or the node.
type points[S any] struct {
	family *family[S]
	ints   []metric.ObserveOption // the attributes of each series
	floats []metric.ObserveOption // one, for all
	totals []total
}

func newPoints[S any](f *family[S], common []attribute.KeyValue) *points[S] {
	p := &points[S]{family: f, totals: make([]total, len(f.wholes)), floats: []metric.ObserveOption{withAttributes(common)}}
	for _, w := range f.wholes {
		p.ints = append(p.ints, withAttributes(common, w.attrs...))
	}
	return p
}

func (p *points[S]) observe(o metric.Observer, s *S) {
	for i := range p.family.wholes {
		w := &p.family.wholes[i]
		v := w.value(s)
		if w.kind == counter {
			v = p.totals[i].of(v)
		}
		o.ObserveInt64(p.family.ints[i], v, p.ints[i:i+1]...)
	}
	for i := range p.family.parts {
		o.ObserveFloat64(p.family.floats[i], p.family.parts[i].value(s), p.floats...)
	}
}

// total keeps a counter from falling where a limiter is closed and made again: a
// counter that falls comes out as a negative number of requests where readers report
// differences.
type total struct{ before, last int64 }

func (t *total) of(v int64) int64 {
	if v < t.last {
		t.before += t.last
	}
	t.last = v
	return t.before + v
}

// withAttributes is what a data point is observed or recorded with.
func withAttributes(common []attribute.KeyValue, more ...attribute.KeyValue) metric.MeasurementOption {
	all := append(append([]attribute.KeyValue{}, common...), more...)
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

// limiterAttribute names a limiter. Names are any bytes, and attributes must be
// UTF-8: one that is not makes exporters drop all that they have. What is not is
// quoted; and so is what looks as if it were, so that no two limiters share a name.
func limiterAttribute(name string) attribute.KeyValue {
	if !utf8.ValidString(name) || strings.HasPrefix(name, `"`) {
		name = strconv.Quote(name)
	}
	return keyLimiter.String(name)
}

func resultAttribute(allowed bool) attribute.KeyValue {
	if allowed {
		return keyResult.String("allowed")
	}
	return keyResult.String("denied")
}

func pathAttribute(p hybrid.Path) attribute.KeyValue { return keyPath.String(p.String()) }
