package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/hybridlimit/hybrid"
)

// Settings are what is measured.
type Settings struct {
	Plan
	Only        *regexp.Regexp // of what hybrid is compared with, only what has such a name; nil: all
	CompareRate int            // at which Exact and redis_rate are measured; 0: the highest that each carries
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
	bare = starter{name: "a map alone", policy: -1, empty: true, start: func(_ string, p Plan) (subject, error) {
		return startBare(p), nil
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
	if err := rep.run(ctx, balanced, s.Plan, &prof, out); err != nil {
		return nil, err
	}
	rep.Redis = rep.Results[0].redis.version
	rep.CPU, rep.Mutex, rep.profiled = prof.cpu, prof.mutex, prof.length
	s.Profiled = 0
	tenfold, known, cold := s.Plan, s.Plan, s.Plan
	tenfold.Limit *= 10
	known.Warmup = min(s.Warmup, 20*time.Second) // until nearly all keys that come are there
	cold.Warmup = 0
	for _, next := range []func() error{
		func() error {
			return rep.run(ctx, balanced.called("hybrid, "+limitText(tenfold.Limit, tenfold.Period)), tenfold, nil, out)
		},
		func() error { return rep.compare(ctx, exact, out) },
		func() error { return rep.compare(ctx, peer, out) },
		func() error { return rep.run(ctx, bare, known, nil, out) },
		func() error { return rep.run(ctx, control, cold, nil, out) },
	} {
		if err := next(); err != nil {
			return nil, err
		}
	}
	return rep, rep.err()
}

// wanted reports whether a subject is to be measured: the first one always is.
func (rep *Report) wanted(s starter) bool {
	return len(rep.Results) == 0 || rep.Settings.Only == nil || rep.Settings.Only.MatchString(s.name)
}

// run measures a subject, if it is wanted.
func (rep *Report) run(ctx context.Context, s starter, p Plan, prof *profiler, out io.Writer) error {
	if !rep.wanted(s) {
		return ctx.Err()
	}
	fmt.Fprintf(out, "%s: %d/s for %v\n", s.name, p.Rate, p.end())
	r, err := s.run(ctx, p, prof)
	if err != nil {
		return err
	}
	rep.Results = append(rep.Results, r)
	return nil
}

// compare measures a subject that asks Redis for each request: at the rate that was
// asked for, or at the highest that it carries and at half of it.
func (rep *Report) compare(ctx context.Context, s starter, out io.Writer) error {
	p := rep.Settings.Plan
	p.Warmup, p.Profiled = time.Second, 0
	p.Measured = min(p.Measured, 10*time.Second)
	if p.Rate = rep.Settings.CompareRate; p.Rate > 0 || !rep.wanted(s) {
		return rep.run(ctx, s, p, nil, out)
	}
	p.Rate = rep.Settings.Plan.Rate
	fmt.Fprintf(out, "%s: searching for the highest rate that it carries\n", s.name)
	best, err := s.atItsBest(ctx, p)
	if err != nil {
		return err
	}
	rep.Results = append(rep.Results, best)
	p.Rate = best.Plan.Rate / 2
	return rep.run(ctx, s, p, nil, out)
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
