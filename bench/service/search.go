package service

import (
	"context"
	"time"
)

// carriedWithin is what 99 of 100 callers may have to wait, from when their request was
// due, at a rate that counts as carried. It is the StoreTimeout of a hybrid node.
const carriedWithin = 20 * time.Millisecond

// carried reports whether a run kept up with its arrivals: nothing piled up or failed,
// and nearly no answer was the failure policy's.
func (r *Result) carried() bool {
	return !r.full && r.errors == 0 && r.latencies.seen.at(99) <= carriedWithin && 1000*r.policy <= r.latencies.seen.count()
}

// A search halves the range of rates so often, with runs so long.
const (
	probes     = 6
	probeFor   = 2 * time.Second
	leastProbe = 500 // requests per second
)

// highest searches for the highest rate that is carried, up to a limit.
func highest(limit int, carries func(rate int) (bool, error)) (int, error) {
	if ok, err := carries(limit); ok || err != nil {
		return limit, err
	}
	good, bad := leastProbe, limit
	for range probes {
		rate := (good + bad) / 2
		ok, err := carries(rate)
		switch {
		case err != nil:
			return 0, err
		case ok:
			good = rate
		default:
			bad = rate
		}
	}
	return good, nil
}

// carries reports whether the subject carries the plan's rate. It gives up as soon as
// calls pile up.
func (s starter) carries(ctx context.Context, p Plan) (bool, error) {
	g, err := s.set(ctx, p)
	if err != nil {
		return false, err
	}
	defer g.strike()
	g.crew.frail = true
	g.crew.run(ctx)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	var r Result
	s.read(&r, g)
	return r.carried(), nil
}

// atItsBest measures a subject at the highest rate that it carries for as long as the
// measured part takes: what a short probe carries may be too much for longer.
func (s starter) atItsBest(ctx context.Context, p Plan) (*Result, error) {
	rate, err := highest(p.Rate, func(rate int) (bool, error) {
		probe := p
		// The load grows at first: calls that pile up while connections are made say nothing of the rate.
		probe.Rate, probe.Warmup, probe.Measured = rate, 2*time.Second, probeFor
		return s.carries(ctx, probe)
	})
	if err != nil {
		return nil, err
	}
	for p.Rate = rate; ; p.Rate -= p.Rate / 10 {
		r, err := s.run(ctx, p, nil)
		if err != nil || r.carried() || p.Rate <= leastProbe {
			return r, err
		}
	}
}
