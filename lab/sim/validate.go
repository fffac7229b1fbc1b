package sim

import (
	"cmp"
	"fmt"
	"time"
)

// What an experiment may be at most. More than that is a typing error: it would run
// for hours, or not fit into memory.
const (
	mostTime     = 10_000 * time.Hour
	mostScenes   = 1_000_000 // on the time line
	mostRequests = 1e9
)

// Validate says which field of an experiment makes no sense. Fields are called as
// their flags.
func (e Experiment) Validate() error {
	if err := e.Limit.Validate(); err != nil && e.Limit != (Experiment{}).Limit {
		return err
	}
	d := e.withDefaults()
	switch {
	case len(d.Faults) > 0 && d.Subject != nil:
		return fmt.Errorf("faults: only the library suffers them")
	case d.changesLater() && d.Subject != nil:
		return fmt.Errorf("refunds, charges: only the library has them")
	case d.Aside.any() && d.Subject != nil:
		return fmt.Errorf("allof, flushes, resets: only the library has them")
	case d.Aside.Resets > 0 && d.changesLater():
		return fmt.Errorf("resets: %v, allowed 0 beside refunds or charges, whose books they end", d.Aside.Resets)
	case d.Sample > 0 && len(d.Scenes) > 0:
		return fmt.Errorf("sample: %v, allowed 0 where there are scenes", d.Sample)
	case d.Load == 0 && d.Rate == 0 && len(d.Scenes) == 0:
		return fmt.Errorf("load 0, rate 0: one of them, or scenes, must be given")
	}
	for _, check := range []func() error{d.validateFleet, d.validateTraffic, d.validateTime, d.validateFaults} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (e Experiment) validateFleet() error {
	return cmp.Or(
		within("nodes", e.Nodes, 1, 1000),
		within("servers", e.Servers, 0, 100_000),
		within("sync", cmp.Or(e.Sync, time.Second), time.Millisecond, 10*time.Second),
		within("timeout", cmp.Or(e.Timeout, time.Second), time.Millisecond, 10*time.Second),
	)
}

func (e Experiment) validateTraffic() error {
	for _, s := range e.Scenes {
		if err := cmp.Or(within("scenes", s.Load, 0, mostRequests), within("scenes", s.Rate, 0, mostRequests)); err != nil {
			return err
		}
	}
	return cmp.Or(
		within("keys", e.Keys, 1, 100_000_000),
		within("maxkeys", e.MaxKeys, 0, 100_000_000),
		within("allof", e.Aside.AllOf, 0, 1),
		within("flushes", e.Aside.Flushes, 0, 1),
		within("resets", e.Aside.Resets, 0, 1),
		within("zipf", e.Skew, 0, 5),
		within("sample", e.Sample, 0, mostRequests),
		within("cost", e.Cost, 1, 1_000_000_000),
		within("load", e.Load, 0, mostRequests),
		within("rate", e.Rate, 0, mostRequests),
	)
}

// validateTime needs rates that make sense.
func (e Experiment) validateTime() error {
	if err := cmp.Or(
		within("fills", e.Fills, 1e-9, 1e6),
		within("warm", e.Warm, 0, mostTime),
		within("still", e.Still, 0, e.Warm),
		within("span", e.Span, 1, mostTime),
		within("scenes and fill times in span", e.lineLength(), 0, mostScenes),
	); err != nil {
		return err
	}
	if n := e.requests(); !(n <= mostRequests) {
		return fmt.Errorf("load, rate or scenes: %.3g requests in warm %v and span %v, allowed 0 to %.0g", n, e.Warm, e.Span, mostRequests)
	}
	return nil
}

// lineLength is about as many stretches as the time line has.
func (e Experiment) lineLength() float64 {
	n := float64(e.Span) / float64(e.Fill())
	var cycle time.Duration
	for _, s := range e.Scenes {
		cycle += min(s.For, mostTime)
	}
	if cycle > 0 {
		n += float64(e.Span) / float64(cycle) * float64(len(e.Scenes))
	}
	return n
}

// requests is how many there will be, of all keys or of a sample of them.
func (e Experiment) requests() (n float64) {
	for _, s := range e.stretches() {
		n += s.rate * (s.to - s.from).Seconds()
	}
	return n
}

// validateFaults refuses what lies beyond the end: the run would go on until then,
// without requests.
func (e Experiment) validateFaults() error {
	end := e.Warm + e.Span
	for _, f := range e.Faults {
		if f.At > end || f.For > end-f.At {
			return fmt.Errorf("faults: %v, allowed until the run ends at %v", f, end)
		}
	}
	return nil
}

// within is an error unless a value lies within a range. NaN lies nowhere.
func within[T int | int64 | float64 | time.Duration](name string, v, least, most T) error {
	if v >= least && v <= most {
		return nil
	}
	return fmt.Errorf("%s: %v, allowed %v to %v", name, v, least, most)
}
