package service

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// starter makes a subject on a Redis of its own.
type starter struct {
	name   string
	policy int  // the path of answers by a failure policy, −1: there is none
	empty  bool // it limits nothing
	start  func(addr string, p Plan) (subject, error)
}

// called is the same under another name.
func (s starter) called(name string) starter {
	s.name = name
	return s
}

// Result is what one subject came to.
type Result struct {
	Name    string
	Plan    Plan
	control bool // nothing was limited

	latencies latencies
	paths     []string
	policy    int64 // answers by the failure policy, in the measured part

	requests int64         // in the time of the books
	elapsed  time.Duration // the time of the books
	books    books
	redis    told
	own      own
	busiest  int  // calls under way at once
	full     bool // arrivals had to wait until a call returned
	errors   int64
	failed   error // the first of them
	verdict  verdict
}

// mostCalls is how many calls may be under way at once.
const mostCalls = 4096

// stage is a subject and a crew that is ready to call it.
type stage struct {
	plan     Plan
	server   *server
	subject  subject
	requests []request
	crew     *crew
	asker    *asker
	alarm    *alarm
}

// set makes a stage: a Redis of its own, and the fleet on it.
func (s starter) set(ctx context.Context, p Plan) (*stage, error) {
	server, err := startServer()
	if err != nil {
		return nil, err
	}
	sub, err := s.start(server.Addr, p)
	if err != nil {
		server.stop()
		return nil, err
	}
	clock, err := newAlarm()
	if err != nil {
		sub.stop()
		server.stop()
		return nil, err
	}
	g := &stage{plan: p, server: server, subject: sub, requests: p.schedule(), asker: &asker{ctx: ctx, subject: sub}, alarm: clock}
	g.crew = newCrew(g.requests, mostCalls, g.asker.ask)
	g.crew.pause = clock.sleep
	g.asker.now = g.crew.now
	return g, nil
}

func (g *stage) strike() {
	g.alarm.stop()
	g.subject.stop()
	g.server.stop()
}

// run measures one subject under the plan's load.
func (s starter) run(ctx context.Context, p Plan, prof *profiler) (*Result, error) {
	g, err := s.set(ctx, p)
	if err != nil {
		return nil, err
	}
	defer g.strike()
	r := &Result{Name: s.name, Plan: p, control: s.empty, paths: g.subject.paths()}
	b := &bookkeeper{ctx: ctx, stage: g, profiler: prof}
	kept := make(chan error, 1)
	go func() { kept <- b.keep(r) }()
	g.crew.run(ctx)
	if err := errors.Join(ctx.Err(), <-kept); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	s.read(r, g)
	r.requests = b.count(g.requests)
	if !s.empty {
		r.verdict = p.judge(g.requests, g.subject.over(), s.policy)
	}
	return r, nil
}

// read fills in what the requests say.
func (s starter) read(r *Result, g *stage) {
	r.busiest, r.full = g.crew.busiest, g.crew.full
	r.errors, r.failed = g.asker.errors.Load(), g.asker.failed
	r.latencies = g.plan.measure(g.requests, len(g.subject.paths()))
	if s.policy >= 0 {
		r.policy = r.latencies.paths[s.policy].count()
	}
}

// bookkeeper reads what the fleet, Redis and this process count, before and after the
// measured part.
type bookkeeper struct {
	*stage

	ctx      context.Context
	profiler *profiler

	from, until int64 // ns from the run's beginning
}

// page is all counts at one moment.
type page struct {
	books books
	redis told
	own   own
}

// keep fills in the counts. It returns when the profile is written.
func (b *bookkeeper) keep(r *Result) error {
	// To ask the nodes takes this process some time, which is not to be counted: so
	// they are asked first before and last after.
	if err := b.wait(b.plan.Warmup); err != nil {
		return err
	}
	first := page{books: b.subject.books()}
	err := b.read(&first)
	b.from = b.crew.now()

	err = errors.Join(err, b.wait(b.plan.until()))
	var last page
	b.until = b.crew.now()
	err = errors.Join(err, b.read(&last))
	last.books = b.subject.books()

	r.elapsed = time.Duration(b.until - b.from)
	r.books, r.redis, r.own = last.books.since(first.books), last.redis.since(first.redis), last.own.since(first.own)
	if b.plan.Profiled > 0 && err == nil {
		err = b.profiler.record(b.ctx, b.plan.end()-time.Duration(b.crew.now()))
	}
	return err
}

func (b *bookkeeper) read(p *page) (err error) {
	p.own = readOwn()
	p.redis, err = b.server.ask(b.ctx)
	return err
}

// wait returns at a moment of the run.
func (b *bookkeeper) wait(moment time.Duration) error {
	select {
	case <-time.After(moment - time.Duration(b.crew.now())):
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// count is how many requests, without those of the witness, fell into the time of the
// books.
func (b *bookkeeper) count(requests []request) (n int64) {
	for i := range requests {
		if r := &requests[i]; r.node != witness && r.made() && r.began >= b.from && r.began < b.until {
			n++
		}
	}
	return n
}
