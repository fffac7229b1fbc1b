package service

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latency is a distribution of times, to three digits.
type latency struct{ h *hdrhistogram.Histogram }

// longest is where a time is not told apart from longer ones any more.
const longest = int64(10 * time.Minute)

func newLatency() latency { return latency{hdrhistogram.New(1, longest, 3)} }

func (l latency) add(ns int64) { _ = l.h.RecordValue(min(max(ns, 1), longest)) }

func (l latency) count() int64 { return l.h.TotalCount() }

// at is the time that q percent do not exceed; 0 if there are none.
func (l latency) at(q float64) time.Duration {
	if q >= 100 {
		return time.Duration(l.h.Max())
	}
	return time.Duration(l.h.ValueAtPercentile(q))
}

// percentiles are those that are told.
var percentiles = []struct {
	name string
	q    float64
}{{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}, {"p100", 100}}

// latencies are those of one run, in its measured part.
type latencies struct {
	added  latency   // from the beginning of the call
	seen   latency   // from when it was due
	paths  []latency // added, by path
	beside latency   // added by the empty limiter, in the same run
}

// measure reads the requests that were due in the measured part.
func (p Plan) measure(requests []request, paths int) latencies {
	l := latencies{added: newLatency(), seen: newLatency(), beside: newLatency()}
	for range paths {
		l.paths = append(l.paths, newLatency())
	}
	for i := range requests {
		r := &requests[i]
		switch {
		case !r.made() || r.due < int64(p.from()) || r.due >= int64(p.until()):
		case r.node == witness:
			l.beside.add(r.took)
		default:
			l.added.add(r.took)
			l.seen.add(r.began + r.took - r.due)
			l.paths[r.path].add(r.took)
		}
	}
	return l
}

// made reports whether the call was made before the run ended.
func (r *request) made() bool { return r.began != 0 }
