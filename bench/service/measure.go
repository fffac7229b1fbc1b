package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Settings are what is measured.
type Settings struct {
	Plan
	Compare     bool // also measure ten times the limit, Exact and redis_rate
	CompareRate int  // at which the latter two are measured; 0: the highest that each carries
}

// Report is all that was measured.
type Report struct {
	Settings Settings
	Results  []*Result // hybrid first, the control last
	Redis    string    // version
	CPU      []byte    // profiles of hybrid, as package pprof writes them; nil: none
	Mutex    []byte
	profiled time.Duration
}

func hybridAt(name string, accuracy hybrid.Accuracy) starter {
	return starter{name: name, policy: int(hybrid.PathFallback), start: func(addr string, p Plan) (subject, error) {
		return startFleet(addr, p, accuracy)
	}}
}

var (
	balanced = hybridAt("hybrid", hybrid.Balanced)
	exact    = hybridAt("hybrid, Exact", hybrid.Exact)
	peer     = starter{name: "redis_rate v10", policy: -1, start: func(addr string, p Plan) (subject, error) {
		return startPerRequest(addr, p), nil
	}}
	control = starter{name: "control", policy: -1, empty: true, start: func(string, Plan) (subject, error) {
		return empty{}, nil
	}}
)

// Measure runs the service, and beside it what it is compared with. It says on out what
// it does.
func Measure(ctx context.Context, s Settings, out io.Writer) (*Report, error) {
	rep := &Report{Settings: s}
	var prof profiler
	fmt.Fprintf(out, "hybrid: warm-up of %v, then %v\n", s.Warmup+s.Settling, s.Measured+s.Profiled)
	main, err := balanced.run(ctx, s.Plan, &prof)
	if err != nil {
		return nil, err
	}
	rep.Results = append(rep.Results, main)
	rep.Redis = main.redis.version
	rep.CPU, rep.Mutex, rep.profiled = prof.cpu, prof.mutex, prof.length
	if s.Compare {
		if err := rep.tenfold(ctx, out); err != nil {
			return nil, err
		}
		for _, other := range []starter{exact, peer} {
			if err := rep.compare(ctx, other, out); err != nil {
				return nil, err
			}
		}
	}
	fmt.Fprintln(out, "control: the same load, an empty limiter")
	p := s.Plan
	p.Warmup, p.Profiled = 0, 0
	if err := rep.add(control.run(ctx, p, nil)); err != nil {
		return nil, err
	}
	return rep, rep.err()
}

// tenfold measures the same with ten times the limit, of which a key uses a tenth.
func (rep *Report) tenfold(ctx context.Context, out io.Writer) error {
	p := rep.Settings.Plan
	p.Limit, p.Profiled = 10*p.Limit, 0
	s := balanced
	s.name = "hybrid, " + limitText(p.Limit, p.Period)
	fmt.Fprintf(out, "%s: the same\n", s.name)
	return rep.add(s.run(ctx, p, nil))
}

// compare measures a subject that asks Redis for each request: at the rate that was
// asked for, or at the highest that it carries and at half of it.
func (rep *Report) compare(ctx context.Context, s starter, out io.Writer) error {
	p := rep.Settings.Plan
	p.Warmup, p.Profiled = time.Second, 0
	p.Measured = min(p.Measured, 10*time.Second)
	if rep.Settings.CompareRate > 0 {
		p.Rate = rep.Settings.CompareRate
		fmt.Fprintf(out, "%s: at %d/s\n", s.name, p.Rate)
		return rep.add(s.run(ctx, p, nil))
	}
	fmt.Fprintf(out, "%s: searching for the highest rate that it carries\n", s.name)
	best, err := s.atItsBest(ctx, p)
	if err := rep.add(best, err); err != nil {
		return err
	}
	p.Rate = best.Plan.Rate / 2
	fmt.Fprintf(out, "%s: carries %d/s; at half of it\n", s.name, best.Plan.Rate)
	return rep.add(s.run(ctx, p, nil))
}

func (rep *Report) add(r *Result, err error) error {
	if err == nil {
		rep.Results = append(rep.Results, r)
	}
	return err
}

// err tells of broken bounds and of calls that failed.
func (rep *Report) err() error {
	var all []error
	for _, r := range rep.Results {
		if err := r.verdict.err(); err != nil {
			all = append(all, fmt.Errorf("%s: %w", r.Name, err))
		}
		if r.failed != nil {
			all = append(all, fmt.Errorf("%s: %d calls failed, the first with: %w", r.Name, r.errors, r.failed))
		}
	}
	if main := rep.Results[0]; main.books.operations > uint64(main.requests) {
		all = append(all, fmt.Errorf("hybrid: %d operations for %d requests: never more than one per request is promised", main.books.operations, main.requests))
	}
	return errors.Join(all...)
}
