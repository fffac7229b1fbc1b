package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hybridlimit/hybrid/bench/peer"
	"github.com/hybridlimit/hybrid/bench/redisd"
	"github.com/hybridlimit/hybrid/bench/report"
)

// Result is all tables of one run.
type Result struct {
	Redis  string // version
	Tables []report.Table
}

// runner is one run.
type runner struct {
	Config
	ctx     context.Context
	say     func(format string, args ...any)
	keys    []string
	begin   time.Time
	servers []*redisd.Server // all that were started
	shared  *redisd.Server
	ripe    ripening
}

// Run measures, and tells its progress. What began when ctx ends is measured to
// the end; no more than seconds.
func Run(ctx context.Context, c Config, say func(format string, args ...any)) (res Result, err error) {
	if err := c.validate(); err != nil {
		return res, err
	}
	r := &runner{Config: c, ctx: ctx, say: say, keys: makeKeys(c.keys()), begin: time.Now()}
	defer r.stop()
	if r.shared, err = r.start(); err != nil {
		return res, err
	}
	res.Redis = r.shared.Version(ctx)
	if err := r.ripen(); err != nil {
		return res, err
	}
	tables, err := r.all()
	if err = errors.Join(err, r.ripe.close()); err != nil {
		return res, err
	}
	slices.SortStableFunc(tables, func(a, b report.Table) int {
		return slices.Index(Tables, a.Name) - slices.Index(Tables, b.Name)
	})
	for i := range tables {
		inOrder(tables[i].Rows)
	}
	res.Tables = tables
	return res, nil
}

// inOrder sorts rows as the contestants are listed.
func inOrder(rows []report.Row) {
	all := peer.All()
	place := func(r report.Row) int {
		return slices.IndexFunc(all, func(k peer.Kind) bool { return k.Name == r.Name })
	}
	slices.SortStableFunc(rows, func(a, b report.Row) int { return place(a) - place(b) })
}

// all measures in an order in which nobody waits for long: first what needs no
// floors, while they are earned; last what is disturbed by everything else.
func (r *runner) all() (tables []report.Table, err error) {
	for _, step := range []struct {
		tables  []string
		measure func() ([]report.Table, error)
	}{
		{[]string{"flood"}, r.flood},
		{[]string{"latency"}, r.latency},
		{[]string{"traffic", "fleet"}, r.fleets},
		{[]string{"memory", "heap"}, r.memory},
	} {
		if !slices.ContainsFunc(step.tables, r.wants) {
			continue
		}
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		found, err := step.measure()
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if r.wants(t.Name) {
				tables = append(tables, t)
			}
		}
	}
	return tables, nil
}

// start runs one more Redis until the end.
func (r *runner) start() (*redisd.Server, error) {
	s, err := redisd.Start()
	if err != nil {
		return nil, err
	}
	r.servers = append(r.servers, s)
	return s, nil
}

func (r *runner) stop() {
	for _, s := range r.servers {
		s.Stop()
	}
}

// tell says what is measured now, and since when the run goes on.
func (r *runner) tell(format string, args ...any) {
	r.say("%4.0f s  %s", time.Since(r.begin).Seconds(), fmt.Sprintf(format, args...))
}

// ripening is what must be old before it is measured: nodes whose floors are
// earned. Each has a server of its own, so that its heartbeats are charged to
// nobody else.
type ripening struct {
	at        time.Time // when it is ripe
	distances []*redisd.Distance
	near      [][]*entrant // nodes by delay
	fleet     []*entrant   // fleets
}

func (r *runner) ripen() error {
	r.ripe.at = time.Now().Add(r.Age)
	r.ripe.near = make([][]*entrant, len(r.Delays))
	for _, kind := range kinds(peer.Unasked) {
		for i, delay := range r.Delays {
			if !r.wants("latency") {
				break
			}
			e, err := r.enterFar(kind, delay)
			if err != nil {
				return err
			}
			r.ripe.near[i] = append(r.ripe.near[i], e)
		}
		if r.wants("traffic") || r.wants("fleet") {
			e, err := r.enterFleet(kind)
			if err != nil {
				return err
			}
			r.ripe.fleet = append(r.ripe.fleet, e)
		}
	}
	return nil
}

// wait returns when all is ripe, or ctx ends.
func (r *runner) wait() error {
	left := time.Until(r.ripe.at)
	if left <= 0 {
		return nil
	}
	r.tell("%.0f s until floors are earned", left.Seconds())
	select {
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-time.After(left):
		return nil
	}
}

func (p *ripening) close() error {
	errs := []error{closeAll(p.fleet)}
	for _, nodes := range p.near {
		errs = append(errs, closeAll(nodes))
	}
	p.near, p.fleet = nil, nil
	for _, d := range p.distances {
		d.Close()
	}
	p.distances = nil
	return errors.Join(errs...)
}

// enterFar sets a contestant up beside a server of its own, at a distance.
func (r *runner) enterFar(kind peer.Kind, delay time.Duration) (*entrant, error) {
	server, err := r.start()
	if err != nil {
		return nil, err
	}
	addr, err := r.away(server, delay)
	if err != nil {
		return nil, err
	}
	return enter(kind, server, addr, 1, r.Limit, len(r.keys))
}

// away is an address of the server at a distance, for as long as the run takes.
func (r *runner) away(server *redisd.Server, delay time.Duration) (string, error) {
	if delay == 0 {
		return server.Addr, nil
	}
	d, err := redisd.NewDistance(server.Addr, delay)
	if err != nil {
		return "", err
	}
	r.ripe.distances = append(r.ripe.distances, d)
	return d.Addr, nil
}

// enterFleet sets a fleet up, with a server of its own if it needs one.
func (r *runner) enterFleet(kind peer.Kind) (*entrant, error) {
	if !kind.Place.Has(peer.Redis) {
		return enter(kind, nil, "", r.Nodes, r.Limit, len(r.keys))
	}
	server, err := r.start()
	if err != nil {
		return nil, err
	}
	return enter(kind, server, server.Addr, r.Nodes, r.Limit, len(r.keys))
}
