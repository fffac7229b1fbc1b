package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
)

// policies are the failure policies; each node has a limiter for each.
var policies = []hybrid.FailurePolicy{hybrid.FailLocal, hybrid.FailOpen, hybrid.FailClosed}

// kind is how much a key is used.
type kind uint8

const (
	hot   kind = iota // one key per limiter, asked for more than its limit allows
	warm              // a few keys, far below their limits
	fresh             // never asked for before
)

func (k kind) String() string { return [...]string{"hot", "warm", "fresh"}[k] }

// load is what a fleet is asked for.
type load struct {
	rate       float64 // requests a second, over the fleet and all limiters
	workers    int     // goroutines per node
	hot, fresh float64 // parts of the requests; the rest goes to warm keys
	warm       int     // keys
	seed       uint64
}

func usualLoad() load {
	l := load{rate: 1500, workers: 12, hot: 0.5, fresh: 0.1, warm: 20, seed: *seedFlag}
	if raceDetector { // which makes everything slow
		l.rate, l.workers = 750, 6
	}
	return l
}

// secretMark is in every key, and in no log line.
const secretMark = "user-7f3a"

// request is one call of Allow.
type request struct {
	policy int // index in policies
	kind   kind
	key    string
	pause  float64 // before the next request, in units of the worker's interval
}

// stream is what a worker asks for, one after the other. It depends on the seed alone.
func (l load) stream(worker int) func() request {
	rng := rand.New(rand.NewPCG(l.seed, uint64(worker)))
	n := 0
	return func() request {
		r := request{policy: rng.IntN(len(policies)), pause: 0.5 + rng.Float64()}
		switch x := rng.Float64(); {
		case x < l.hot:
			r.kind, r.key = hot, secretMark+"-hot"
		case x < l.hot+l.fresh:
			n++
			r.kind, r.key = fresh, fmt.Sprintf("%s-fresh-%d-%d", secretMark, worker, n)
		default:
			r.kind, r.key = warm, fmt.Sprintf("%s-warm-%d", secretMark, rng.IntN(l.warm))
		}
		return r
	}
}

// answer is one request with what became of it.
type answer struct {
	at, took time.Duration // when it was asked, since the run began; how long the call lasted
	node     int
	policy   hybrid.FailurePolicy
	kind     kind
	key      string
	allowed  bool
	path     hybrid.Path
	retry    time.Duration
	err      error
}

func (a *answer) end() time.Duration { return a.at + a.took }

// drive asks the fleet until stop is closed, and returns all answers once the
// workers have ended.
func (l load) drive(f *fleet, began time.Time, stop <-chan struct{}) (collect func() []answer) {
	var wg sync.WaitGroup
	all := make([][]answer, l.workers*len(f.nodes))
	interval := time.Duration(float64(len(all)) / l.rate * float64(time.Second))
	for w := range all {
		wg.Go(func() {
			node := w % len(f.nodes)
			next := time.Now().Add(interval * time.Duration(w) / time.Duration(len(all)))
			for stream := l.stream(w); ; {
				r := stream()
				select {
				case <-stop:
					return
				case <-time.After(time.Until(next)):
				}
				all[w] = append(all[w], f.ask(node, r, began))
				next = next.Add(time.Duration(r.pause * float64(interval)))
			}
		})
	}
	return func() (flat []answer) {
		wg.Wait()
		for _, part := range all {
			flat = append(flat, part...)
		}
		return flat
	}
}

// ask makes one call.
func (f *fleet) ask(node int, r request, began time.Time) answer {
	at := time.Now()
	res, err := f.nodes[node].limiters[r.policy].Allow(context.Background(), r.key)
	return answer{at: at.Sub(began), took: time.Since(at), node: node, policy: policies[r.policy], kind: r.kind, key: r.key,
		allowed: res.Allowed, path: res.Path, retry: res.RetryAfter, err: err}
}

func TestSameSeedSameLoad(t *testing.T) {
	draw := func(seed uint64, worker int) (drawn []request) {
		l := usualLoad()
		l.seed = seed
		next := l.stream(worker)
		for range 1000 {
			drawn = append(drawn, next())
		}
		return drawn
	}
	equal := func(a, b []request) int {
		same := 0
		for i := range a {
			if a[i] == b[i] {
				same++
			}
		}
		return same
	}
	if n := equal(draw(1, 2), draw(1, 2)); n != 1000 {
		t.Errorf("of the same seed and worker %d requests of 1000 are the same", n)
	}
	if a, b := equal(draw(1, 2), draw(1, 3)), equal(draw(1, 2), draw(2, 2)); a+b > 20 {
		t.Errorf("another worker: %d, another seed: %d requests of 1000 are the same", a, b)
	}
	counts := map[kind]int{}
	for _, r := range draw(1, 0) {
		counts[r.kind]++
	}
	if counts[hot] < 400 || counts[warm] < 300 || counts[fresh] < 50 {
		t.Errorf("kinds: %v", counts)
	}
}
