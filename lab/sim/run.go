package sim

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Run runs an experiment in a bubble of virtual time. It may be called from
// several goroutines at once, with the same t. What went wrong is in the figures.
func (e Experiment) Run(t *testing.T) *Figures {
	began := time.Now()
	var f *Figures
	synctest.Test(t, func(*testing.T) { f = e.withDefaults().run() })
	f.Elapsed = time.Since(began)
	return f
}

func (e Experiment) run() *Figures {
	rng := e.random("phase")
	time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Minute)))) // lease epochs and windows begin anywhere in the run
	keys := e.population()
	subject, library := e.subject(keys)
	defer subject.Close()
	time.Sleep(time.Duration(rng.Int64N(int64(time.Millisecond)))) // no node ticks when the measured part begins
	j := newJudge(e, keys)
	c := newCrowd(e, subject, j, keys)

	var others sync.WaitGroup
	if library != nil {
		c.nodes, c.placer.tokens, c.changer = library.living, library.tokens, library
		library.changes.judge = j
		others.Go(func() { library.suffer(c.start) })
		if j.tabOf != nil {
			others.Go(func() { library.audit(j, c.names, c.start, e.Warm+e.Span) })
		}
	}
	var before bill
	others.Go(func() {
		time.Sleep(e.Warm)
		before = billOf(subject)
	})
	c.run()
	time.Sleep(e.Warm + e.Span - time.Since(c.start))
	others.Wait()

	f := &Figures{Experiment: e, Free: math.NaN(), Lent: math.NaN()}
	j.finish(f)
	after := billOf(subject)
	f.Cost = after.since(before, keys)
	if library != nil {
		f.Remembered = library.remembered()
		library.testify(f, after.Cost)
	}
	return f
}

// bill is what a subject has cost so far.
type bill struct {
	Cost
	strata []ByReason // operations of each stratum of the keys; nil if it is not the library
}

func billOf(s Subject) bill {
	b := bill{Cost: s.Cost()}
	if f, ok := s.(*fleet); ok {
		for i := range f.meter.strata {
			b.strata = append(b.strata, f.meter.strata[i].load())
		}
	}
	return b
}

// since is what was spent since an earlier bill, on all keys.
func (b bill) since(before bill, keys *population) Cost {
	c := b.Cost.minus(before.Cost)
	if b.strata != nil {
		c.Operations = 0
	}
	for i, by := range b.strata {
		all := keys.scale(i)
		for reason, n := range by.minus(before.strata[i]) {
			c.By[reason] += all(n)
			c.Operations += all(n)
		}
	}
	return c
}

// subject makes what the experiment is about. library is nil if it is not the library.
func (e Experiment) subject(keys *population) (s Subject, library *fleet) {
	if e.Subject == nil {
		library = newFleet(e, keys)
		return library, library
	}
	rng, mu := e.random("trips"), sync.Mutex{}
	return e.Subject(Setup{Nodes: e.Nodes, Limit: e.Limit, Trip: func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return e.Trip.Draw(rng.Float64()) + time.Duration(rng.IntN(997))
	}}), nil
}

// testify says what only the library's own fleet knows.
func (f *fleet) testify(fig *Figures, total Cost) {
	fig.Refunds, fig.Refunded = f.changes.refunds.Load(), f.changes.refunded.Load()
	fig.Charges, fig.Charged = f.changes.charges.Load(), f.changes.charged.Load()
	fig.Known = time.Duration(f.changes.longest.Load())
	if calls := fig.Asked + fig.Refunds + fig.Charges; total.Operations > calls || f.meter.exceeded.Load() {
		f.problem("operations", fmt.Errorf("%d operations for %d calls", total.Operations, calls))
	}
	if g, err := f.backend.state("k0", f.e.Limit.Rule()); err == nil {
		fig.Free, fig.Lent = math.Max(0, float64(f.e.Limit.Burst())-g.Used), float64(g.Lent)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind, err := range f.problems {
		fig.Problem = append(fig.Problem, fmt.Errorf("%s: %w", kind, err))
	}
}

func newCrowd(e Experiment, s Subject, j *judge, keys *population) *crowd {
	nodes := make([]int, e.Nodes)
	for i := range nodes {
		nodes[i] = i
	}
	return &crowd{e: &e, subject: s, judge: j, start: time.Now(), names: keys.names(),
		nodes:   func() []int { return nodes },
		traffic: newTraffic(e, keys), placer: &placer{rng: e.random("places")}}
}
