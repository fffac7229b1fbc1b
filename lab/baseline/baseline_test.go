package baseline

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
	"github.com/hybridlimit/hybrid/lab/sim"
)

const trip = 600 * time.Microsecond

func steady() time.Duration { return trip }

// run is a fleet in a bubble and everything that it answered.
type run struct {
	sim.Subject
	limit oracle.Limit

	mu       sync.Mutex
	requests []oracle.Request
	pending  sync.WaitGroup
}

func inBubble(t *testing.T, k Kind, nodes int, limit hybrid.Limit, test func(r *run)) {
	t.Helper()
	inBubbleAt(t, k, nodes, limit, steady, test)
}

func inBubbleAt(t *testing.T, k Kind, nodes int, limit hybrid.Limit, rtt func() time.Duration, test func(r *run)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		r := &run{Subject: New(k, nodes, limit, rtt), limit: judgeOf(limit)}
		test(r)
		r.pending.Wait()
		r.Close()
	})
}

func judgeOf(limit hybrid.Limit) oracle.Limit {
	if limit.Windowed() {
		return oracle.NewWindow(limit.Count(), limit.Period())
	}
	return oracle.New(limit.Count(), limit.Period(), limit.Burst())
}

// ask asks and remembers the answer.
func (r *run) ask(node int, key string, cost int64) sim.Answer {
	a := r.Ask(node, key, cost)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, oracle.Request{At: a.At, Cost: cost, Allowed: a.Allowed})
	return a
}

// burst asks n times at once and returns how many were let through.
func (r *run) burst(node, n int) (admitted int) {
	for range n {
		if r.ask(node, "k", 1).Allowed {
			admitted++
		}
	}
	return admitted
}

// load offers Poisson arrivals, rate a second, to the node that pick returns.
func (r *run) load(rng *rand.Rand, rate float64, d time.Duration, pick func(since time.Duration) int) {
	start := time.Now()
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() / rate * float64(time.Second))
		if at > d {
			break
		}
		time.Sleep(at - time.Since(start))
		node := pick(at)
		r.pending.Go(func() { r.ask(node, "k", 1) })
	}
	time.Sleep(d - time.Since(start))
	r.pending.Wait()
}

// uniform is load that is spread evenly over n nodes.
func (r *run) uniform(rng *rand.Rand, rate float64, d time.Duration, n int) {
	r.load(rng, rate, d, func(time.Duration) int { return rng.IntN(n) })
}

func (r *run) report() oracle.Report { return r.limit.Check(oracle.Admissions(r.requests)) }

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// near fails if got is not within a tenth of want.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > want/10 {
		t.Errorf("%s: %.3f, want about %.3f", what, got, want)
	}
}

// Whoever asks: no scheme admits more than it is offered, makes more operations
// than there are requests (reports of idle keys aside), or hangs.
func TestEveryScheme(t *testing.T) {
	limits := []hybrid.Limit{hybrid.PerSecond(100), hybrid.Window(100, time.Second), hybrid.PerMinute(5), hybrid.PerSecond(0).WithBurst(3)}
	for _, k := range All() {
		for _, limit := range limits {
			t.Run(k.String()+"/"+limit.String(), func(t *testing.T) {
				inBubble(t, k, 20, limit, func(r *run) {
					r.uniform(seeded(), 140, 5*time.Second, 20)
					if c := r.Cost(); c.Operations > int64(len(r.requests)) || c.Operations != c.Commands || c.RoundTrips > c.Commands {
						t.Errorf("%d requests cost %+v", len(r.requests), c)
					}
				})
			})
		}
	}
}

// What a kind says of itself is what a command line takes.
func TestKindsHaveNames(t *testing.T) {
	names := map[string]bool{}
	for _, want := range All() {
		var got Kind
		if err := got.Set(want.String()); err != nil || got != want {
			t.Errorf("%v is read as %v, %v", want, got, err)
		}
		names[want.Name()] = true
	}
	if len(names) != len(All()) || !names["post-paid, 50 ms"] || !names["post-paid, 1 s"] {
		t.Errorf("names: %v", names)
	}
	for _, wrong := range []string{"", "postpaid", "postpaid:0s", "dynamic"} {
		if new(Kind).Set(wrong) == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}
