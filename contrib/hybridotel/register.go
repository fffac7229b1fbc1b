package hybridotel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/hybridlimit/hybrid"
)

// Scope is the name of the meter.
const Scope = "github.com/hybridlimit/hybrid/contrib/hybridotel"

// Options are the settings of Register. The zero value of each field means its
// default.
type Options struct {
	// MeterProvider makes the instruments. Default otel.GetMeterProvider(), which may be
	// told of its SDK later.
	MeterProvider metric.MeterProvider

	// Attributes are added to every data point. A process with more than one node
	// gives each its own, or their numbers come out as one. No key may begin with
	// "hybrid.rate_limiting." or be "error.type". Keys and values are UTF-8: exporters
	// drop all that they have where one is not. Default none.
	Attributes []attribute.KeyValue
}

// Register makes the instruments of a node, which the package comment lists, until
// Unregister is called on what it returns. They are pulled: requests do not know of
// them. Each collection of each reader looks at the node's Stats, but not twice
// within a second: in between it shows the last ones again.
//
// A node is registered once per MeterProvider: twice would count twice. A limiter's
// numbers are there from its making to its closing: what it counts between the last
// reading and Close is not shown. Its counters do not fall when it is closed and made
// again between two readings; if it was gone in one, they begin anew.
//
// It fails with hybrid.ErrInvalidOption, or if the MeterProvider refuses an instrument.
func Register(node *hybrid.Node, opts *Options) (metric.Registration, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if node == nil {
		return nil, invalid("node", "nil", "a node")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	m := &maker{meter: o.MeterProvider.Meter(Scope)}
	c := newCollector(node, m, slices.Clone(o.Attributes))
	if err := errors.Join(m.errs...); err != nil {
		return nil, fmt.Errorf("hybridotel: the instruments: %w", err)
	}
	reg, err := m.meter.RegisterCallback(c.collect, m.made...)
	if err != nil {
		return nil, fmt.Errorf("hybridotel: the callback: %w", err)
	}
	return reg, nil
}

func (o *Options) validate() error {
	for i, kv := range o.Attributes {
		field := fmt.Sprintf("Options.Attributes[%d]", i)
		switch {
		case !kv.Valid():
			return invalid(field, fmt.Sprintf("%q", kv.Key), "a key")
		case strings.HasPrefix(string(kv.Key), prefix), kv.Key == keyCause:
			return invalid(field, fmt.Sprintf("%q", kv.Key), "keys that the metrics do not use themselves")
		case !utf8.ValidString(string(kv.Key)):
			return invalid(field, fmt.Sprintf("the key %q", kv.Key), "keys in UTF-8")
		}
		for _, text := range texts(kv.Value) {
			if !utf8.ValidString(text) {
				return invalid(field, fmt.Sprintf("%q of %q", text, kv.Key), "values in UTF-8")
			}
		}
	}
	return nil
}

// texts are the strings in a value, at any depth.
func texts(v attribute.Value) (all []string) {
	switch v.Type() {
	case attribute.STRING:
		all = []string{v.AsString()}
	case attribute.STRINGSLICE:
		all = v.AsStringSlice()
	case attribute.SLICE:
		for _, inner := range v.AsSlice() {
			all = append(all, texts(inner)...)
		}
	case attribute.MAP:
		for _, inner := range v.AsMap() {
			all = append(append(all, string(inner.Key)), texts(inner.Value)...)
		}
	}
	return all
}

func invalid(field string, value any, allowed string) error {
	return fmt.Errorf("%w: %s: %v, allowed %s", hybrid.ErrInvalidOption, field, value, allowed)
}

// maker makes instruments, and remembers them for the callback and what went wrong
// for the caller.
type maker struct {
	meter metric.Meter
	made  []metric.Observable
	errs  []error
	named map[string]metric.Int64Observable
}

// whole makes the instrument of a series; series of one name share it.
func (m *maker) whole(k kind, name, unit, about string) metric.Int64Observable {
	if made, ok := m.named[name]; ok {
		return made
	}
	var inst metric.Int64Observable
	var err error
	full, desc, in := prefix+name, metric.WithDescription(about), metric.WithUnit(unit)
	switch k {
	case counter:
		inst, err = m.meter.Int64ObservableCounter(full, desc, in)
	case upDown:
		inst, err = m.meter.Int64ObservableUpDownCounter(full, desc, in)
	default:
		inst, err = m.meter.Int64ObservableGauge(full, desc, in)
	}
	m.errs = append(m.errs, err)
	m.made = append(m.made, inst)
	if m.named == nil {
		m.named = make(map[string]metric.Int64Observable)
	}
	m.named[name] = inst
	return inst
}

// part makes a gauge of a number that is not whole.
func (m *maker) part(name, unit, about string) metric.Float64Observable {
	inst, err := m.meter.Float64ObservableGauge(prefix+name, metric.WithDescription(about), metric.WithUnit(unit))
	m.errs = append(m.errs, err)
	m.made = append(m.made, inst)
	return inst
}

// histogram makes a histogram with the buckets of one that a node keeps.
func (m *maker) histogram(name, unit, about string, bounds []float64) metric.Float64Histogram {
	inst, err := m.meter.Float64Histogram(prefix+name, metric.WithDescription(about), metric.WithUnit(unit),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.errs = append(m.errs, err)
	return inst
}
