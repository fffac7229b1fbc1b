package hybridprom

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hybridlimit/hybrid"
)

// metric is a family of counters or gauges. No label may hold a key: keys are as
// many as there are users.
type metric struct {
	name   string // after the namespace
	kind   prometheus.ValueType
	labels []string
	help   string
	read   func(s *snapshot, put put)
}

// put adds one series, with the values of the labels in their order.
type put func(value float64, labels ...string)

// histogram is a distribution that the node has counted.
type histogram struct {
	name string
	help string
	read func(*hybrid.Stats) hybrid.Histogram
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

var metrics = slices.Concat(decisionMetrics, sliceMetrics, keyMetrics, storeMetrics, healthMetrics)

var histograms = []histogram{
	{"store_call_duration_seconds", "Time of calls to Redis that carried operations, until the answer or until the call was given up.",
		func(s *hybrid.Stats) hybrid.Histogram { return s.CallTime }},
	{"store_call_operations", "Operations in one call to Redis.",
		func(s *hybrid.Stats) hybrid.Histogram { return s.BatchSize }},
}

var byLimiter = []string{"limiter"}

// number is what a count or a size may be.
type number interface{ int | uint64 | float64 }

// ofNode reads one number of the node.
func ofNode[N number](read func(*hybrid.Stats) N) func(*snapshot, put) {
	return func(s *snapshot, put put) { put(float64(read(&s.stats))) }
}

// ofLimiters reads one number of each limiter.
func ofLimiters[N number](read func(*hybrid.LimiterStats) N) func(*snapshot, put) {
	return func(s *snapshot, put put) {
		for label, l := range s.limiters {
			put(float64(read(&l)), label)
		}
	}
}
