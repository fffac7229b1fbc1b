package survey

import (
	"fmt"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// Growth is a point of the law of scaling that is to be measured.
type Growth struct {
	report.Point // without figures
	Experiment   sim.Experiment
}

// sampled is how many requests per second stand for each octave of keys.
const sampled = 500

// The axes, without the base, which lies on each.
var (
	grownKeys   = []int{10_000, 100_000, 10_000_000}
	grownNodes  = []int{5, 60, 200}
	grownRates  = []float64{5_000, 200_000, 1_000_000}
	grownLimits = []int64{100, 10_000, 100_000}
)

// The fleet is there, and its floors are full, before the load begins, which has gone
// on for a while before it is measured.
const (
	still = 65 * time.Second
	load  = 90 * time.Second
)

// Scaling is all points. Some are measured with all their keys, because calls, bytes
// and memory cannot be told from a sample; the base is measured both ways, which
// shows what a sample is worth.
func Scaling(seed uint64) (all []Growth) {
	base := sim.Experiment{Nodes: 20, Keys: 1_000_000, Skew: 0.99, Rate: 50_000, Limit: hybrid.PerMinute(1000),
		Still: still, Warm: still + load, Span: time.Minute, Seed: seed}
	add := func(name, axis string, change func(*sim.Experiment)) {
		e := base
		change(&e)
		all = append(all, growth(name, axis, e))
	}
	add(report.Base, report.Base, func(*sim.Experiment) {})
	add(report.Base+", sample", report.Base, func(e *sim.Experiment) { e.Sample = sampled })
	for _, keys := range grownKeys {
		add(fmt.Sprintf("%s %d", report.ByKeys, keys), report.ByKeys, func(e *sim.Experiment) { e.Keys, e.Sample = keys, sampled })
	}
	for _, nodes := range grownNodes {
		add(fmt.Sprintf("%s %d", report.ByNodes, nodes), report.ByNodes, func(e *sim.Experiment) {
			if e.Nodes = nodes; nodes != 200 {
				e.Sample = sampled
			}
		})
	}
	for _, rate := range grownRates {
		add(fmt.Sprintf("%s %.0f", report.ByRate, rate), report.ByRate, func(e *sim.Experiment) {
			if e.Rate = rate; rate > base.Rate {
				e.Sample = sampled
			}
			if rate == 1_000_000 {
				shorten(e)
			}
		})
	}
	for _, limit := range grownLimits {
		add(fmt.Sprintf("%s %d", report.ByLimit, limit), report.ByLimit, func(e *sim.Experiment) { e.Limit, e.Sample = hybrid.PerMinute(limit), sampled })
	}
	add(report.Far, report.Far, func(e *sim.Experiment) {
		e.Nodes, e.Keys, e.Rate, e.Limit = 200, 10_000_000, 1_000_000, hybrid.PerMinute(10_000)
		e.Sample = sampled
		shorten(e)
	})
	return all
}

// shorten is for services whose most popular keys alone have a hundred thousand
// requests per second.
func shorten(e *sim.Experiment) { e.Warm, e.Span = still+time.Minute, 10*time.Second }

// growth is the point of an experiment.
func growth(name, axis string, e sim.Experiment) Growth {
	return Growth{report.Point{
		Name: name, Axis: axis, Sampled: e.Sample > 0,
		Nodes: e.Nodes, Keys: e.Keys, Skew: e.Skew, Rate: e.Rate,
		Limit: float64(e.Limit.Count()) * time.Minute.Seconds() / e.Limit.Period().Seconds(),
		Warm:  (e.Warm - e.Still).Seconds(), Span: e.Span.Seconds(), Command: e.Command(),
	}, e}
}

// Quick makes a point cheap, and less exact: for a look, not for the documentation.
// ok is false if it stays dear, because its most popular keys have so many requests.
func (g Growth) Quick() (quick Growth, ok bool) {
	e := g.Experiment
	e.Sample, e.Warm, e.Span = sampled/5, still+time.Minute, 10*time.Second
	return growth(g.Name, g.Axis, e), e.Rate <= 200_000
}

// Measure runs the point. It is an error if the library broke a promise: that is no
// number to publish.
func (g Growth) Measure(t *testing.T) (report.Point, error) {
	f := g.Experiment.Run(t)
	p, by := g.Point, f.Cost.By
	p.Requests, p.Blocked, p.Operations = f.Requests, f.Blocked, f.Cost.Operations
	p.Asked, p.Refused, p.Refilled, p.Paced = by[sim.Asked], by[sim.Refused], by[sim.Refilled], by[sim.Paced]
	p.Renewed, p.Returned, p.Told = by[sim.Renewed], by[sim.Returned], by[sim.Told]
	if !p.Sampled {
		p.RoundTrips, p.Polls, p.Sent, p.Received = f.Cost.RoundTrips, f.Cost.Polls, f.Cost.Sent, f.Cost.Received
		p.Remembered = f.Remembered
	}
	if err := f.Err(); err != nil {
		return p, fmt.Errorf("%s: %w", p.Command, err)
	}
	return p, nil
}
