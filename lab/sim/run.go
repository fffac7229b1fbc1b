package sim

import (
	"fmt"
	"math"
	"strconv"
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
	phase := e.random("phase").Int64N(int64(2 * time.Minute))
	time.Sleep(time.Duration(phase)) // lease epochs and windows begin anywhere in the run
	subject, library := e.subject()
	defer subject.Close()
	j := newJudge(e)
	c := newCrowd(e, subject, j)

	var chaos sync.WaitGroup
	if library != nil {
		c.nodes, c.placer.tokens = library.living, library.tokens
		chaos.Go(func() { library.suffer(c.start) })
	}
	var before Cost
	chaos.Go(func() {
		time.Sleep(e.Warm)
		before = subject.Cost()
	})
	c.run()
	time.Sleep(e.Warm + e.Span - time.Since(c.start))
	chaos.Wait()
	j.finish()

	f := j.sums.f
	f.Cost = subject.Cost().minus(before)
	if library != nil {
		library.testify(f, subject.Cost())
	}
	return f
}

// subject makes what the experiment is about. library is nil if it is not the library.
func (e Experiment) subject() (s Subject, library *fleet) {
	if e.Subject == nil {
		library = newFleet(e)
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
	if total.Operations > fig.Asked {
		f.problem("operations", fmt.Errorf("%d operations for %d requests", total.Operations, fig.Asked))
	}
	if g, err := f.backend.state(keyNames(1)[0], f.e.Limit.Rule()); err == nil {
		fig.Free, fig.Lent = math.Max(0, float64(f.e.Limit.Burst())-g.Used), float64(g.Lent)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind, err := range f.problems {
		fig.Problem = append(fig.Problem, fmt.Errorf("%s: %w", kind, err))
	}
}

// keyNames are short, as those of most services.
func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "k" + strconv.Itoa(i)
	}
	return names
}

func newCrowd(e Experiment, s Subject, j *judge) *crowd {
	nodes := make([]int, e.Nodes)
	for i := range nodes {
		nodes[i] = i
	}
	return &crowd{subject: s, judge: j, start: time.Now(), names: keyNames(e.Keys),
		nodes:   func() []int { return nodes },
		traffic: newTraffic(e), placer: &placer{rng: e.random("places")}}
}
