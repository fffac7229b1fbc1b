package hybrid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

// This file is calls at any moment: all methods at once, contexts that end
// anywhere, limiters and nodes that close in the middle of everything, over links
// that fail. Every call has one of its documented outcomes, and nothing is left.

var accuracies = []Accuracy{Balanced, Strict, Exact}

// moments is many callers of one fleet's nodes, each with a schedule of its own.
type moments struct {
	f    *fleet
	mu   sync.Mutex
	seen map[string]int // outcomes by method
}

// errors that a method may return besides none.
var (
	leaving    = []error{context.Canceled, context.DeadlineExceeded, ErrClosed}
	documented = map[string][]error{
		"AllowN": leaving, "Peek": leaving, "Inspect": leaving, "WaitN": append([]error{ErrExceedsBurst}, leaving...), "AllowAll": leaving,
		"Refund": {ErrClosed}, "Charge": {ErrClosed}, "SetLimit": {ErrClosed}, "Limiter": {ErrClosed, ErrDuplicateLimiter},
		"Flush": append([]error{ErrUnsettled}, leaving...),
		// These three also say what kept Redis from it.
		"Reset": nil, "Limiter.Close": nil, "Node.Close": nil,
	}
)

// outcome judges a call that has returned, and how long it took.
func (m *moments) outcome(method string, err error, took, most time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	result := "nil"
	if allowed := documented[method]; err != nil {
		result = "other"
		for _, e := range append([]error{ErrClosed, context.Canceled, context.DeadlineExceeded}, allowed...) {
			if errors.Is(err, e) {
				result = e.Error()
			}
		}
		if allowed != nil && !isAny(err, allowed) {
			m.f.t.Errorf("%s: %v", method, err)
		}
	}
	if took > most {
		m.f.t.Errorf("%s took %v, allowed %v: %v", method, took, most, err)
	}
	m.seen[method+": "+result]++
}

func isAny(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// caller calls anything at any moment until the time is over.
func (m *moments) caller(seed uint64, end time.Time, slack time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(5*time.Millisecond)))
		m.call(rng, slack)
	}
}

// call makes one call with a context that ends at any moment, or never.
func (m *moments) call(rng *rand.Rand, slack time.Duration) {
	node := rng.IntN(len(m.f.nodes))
	c := &momentCall{f: m.f, node: m.f.nodes[node], limiter: m.limiter(rng, node), of: m.f.lims[node], rng: rng,
		key: fmt.Sprint("key ", rng.IntN(4)), cost: int64(rng.IntN(30))}
	defer c.leaveSometime()()
	pick := rng.IntN(momentWeights)
	i := slices.IndexFunc(momentMethods, func(method momentMethod) bool {
		pick -= method.weight
		return pick < 0
	})
	method := momentMethods[i]
	start := time.Now()
	err := method.call(c)
	m.outcome(method.name, err, time.Since(start), method.most(c.node.opts.StoreTimeout, c.patience)+slack)
}

// momentCall is what is called, and by whom.
type momentCall struct {
	f       *fleet
	node    *Node
	limiter *Limiter
	of      *Limiter // the fleet's on the node
	rng     *rand.Rand
	key     string
	cost    int64

	done     context.Context
	patience time.Duration // of who waits for more than the store
}

// leaveSometime gives the call a context that times out, is cancelled, or lasts.
func (c *momentCall) leaveSometime() (end func()) {
	c.patience = time.Duration(c.rng.Int64N(int64(30 * time.Millisecond)))
	var cancel context.CancelFunc
	switch c.rng.IntN(3) {
	case 0:
		c.done, cancel = context.WithTimeout(ctx, c.patience)
	case 1:
		c.done, cancel = context.WithCancel(ctx)
		t := time.AfterFunc(c.patience, cancel)
		return func() { t.Stop(); cancel() }
	default:
		c.patience = time.Second
		c.done, cancel = context.WithTimeout(ctx, c.patience)
	}
	return cancel
}

// momentMethod is a method, how often it is called, and how long it may take.
type momentMethod struct {
	name   string
	weight int // of momentWeights
	most   func(store, patience time.Duration) time.Duration
	call   func(*momentCall) error
}

const momentWeights = 60

// What a call may wait for: the store once, or twice, or as long as its caller.
func once(store, _ time.Duration) time.Duration            { return store }
func twice(store, _ time.Duration) time.Duration           { return 2 * store }
func patiently(_, patience time.Duration) time.Duration    { return patience }
func inTheEnd(store, patience time.Duration) time.Duration { return patience + store }
func closing(_, _ time.Duration) time.Duration             { return closeTimeout }

var momentMethods = []momentMethod{
	{"Flush", 1, patiently, func(c *momentCall) error { return c.node.Flush(c.done) }},
	{"Reset", 1, once, func(c *momentCall) error { return c.limiter.Reset(c.done, c.key) }},
	{"SetLimit", 1, once, func(c *momentCall) error { return c.limiter.SetLimit(PerSecond(c.rng.Int64N(100))) }},
	{"Limiter.Close", 1, closing, (*momentCall).closeLimiter},
	{"WaitN", 3, inTheEnd, func(c *momentCall) error { return c.limiter.WaitN(c.done, c.key, c.cost) }},
	{"Peek", 2, once, (*momentCall).peek},
	{"Charge", 2, once, func(c *momentCall) error { return c.limiter.Charge(c.key, c.cost) }},
	{"Refund", 2, once, func(c *momentCall) error { return c.limiter.Refund(c.key, c.cost) }},
	{"AllowAll", 2, twice, (*momentCall).allowAll},
	{"Stats", 1, once, func(c *momentCall) error { c.node.Stats(); return nil }},
	{"Denied", 1, once, func(c *momentCall) error { c.limiter.Denied(3); return nil }},
	{"Inspect", 2, once, (*momentCall).inspect},
	{"AllowN", 41, once, (*momentCall).allowN},
}

// closeLimiter leaves the limiter of the fleet open.
func (c *momentCall) closeLimiter() error {
	if c.limiter.Name() == "api" {
		return nil
	}
	return c.limiter.Close()
}

func (c *momentCall) peek() error {
	_, err := c.limiter.Peek(c.done, c.key)
	return err
}

func (c *momentCall) inspect() error {
	s, err := c.limiter.Inspect(c.done, c.key)
	if err == nil && s.Why == "" {
		c.f.t.Error("no reason")
	}
	return err
}

func (c *momentCall) allowAll() error {
	_, err := c.node.AllowAll(c.done, Check{c.of, c.key, c.cost}, Check{c.of, c.key, 1})
	return err
}

func (c *momentCall) allowN() error {
	r, err := c.limiter.AllowN(c.done, c.key, c.cost)
	if err != nil && r != (Result{}) {
		c.f.t.Errorf("a result beside the error: %+v, %v", r, err)
	}
	return err
}

// limiter picks the limiter of the fleet, or one that closes now and then.
func (m *moments) limiter(rng *rand.Rand, node int) *Limiter {
	if rng.IntN(3) > 0 {
		return m.f.lims[node]
	}
	start := time.Now()
	l, err := m.f.nodes[node].Limiter(fmt.Sprint("other ", rng.IntN(3)), PerSecond(50), &LimiterOptions{Accuracy: accuracies[rng.IntN(3)], OnFailure: FailurePolicy(rng.IntN(3))})
	m.outcome("Limiter", err, time.Since(start), time.Second)
	if err != nil {
		return m.f.lims[node]
	}
	return l
}

// trouble breaks links and loses replies at any moment.
func (f *fleet) trouble(rng *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rng.Int64N(int64(60 * time.Millisecond))))
		way := f.links[rng.IntN(len(f.links))]
		switch rng.IntN(4) {
		case 0:
			way.Cut(true)
			time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
			way.Cut(false)
		default:
			way.Inject([]fault{refused, cutBefore, cutAfter, swallowed}[rng.IntN(4)])
		}
	}
}

// anyMoment lets callers loose on a fleet for a while, in the middle of which nodes close, one after the other.
// Outcomes are counted in seen.
func anyMoment(f *fleet, seen map[string]int, seed uint64, span, slack time.Duration, faults bool) {
	m := &moments{f: f, seen: seen}
	rng := rand.New(rand.NewPCG(seed, 6))
	end := time.Now().Add(span)
	var all sync.WaitGroup
	for i := range uint64(12) {
		all.Go(func() { m.caller(seed*100+i, end, slack) })
	}
	if faults {
		all.Go(func() { f.trouble(rng, end) })
	}
	for i, n := range f.nodes {
		at := span/3 + time.Duration(rand.New(rand.NewPCG(seed, uint64(i))).Int64N(int64(span/2)))
		for range 2 { // twice, at nearly the same moment
			all.Go(func() {
				time.Sleep(at)
				start := time.Now()
				err := n.Close()
				m.outcome("Node.Close", err, time.Since(start), closeTimeout+slack)
			})
		}
	}
	all.Wait()
	m.after()
}

// after calls everything once more, when all is closed.
func (m *moments) after() {
	f := m.f
	for i, n := range f.nodes {
		f.gone[i] = true
		for method, err := range callAll(n, f.lims[i], "key", 1) {
			if !errors.Is(err, ErrClosed) {
				f.t.Errorf("%s of a closed node: %v", method, err)
			}
		}
		for method, err := range map[string]error{"Flush": n.Flush(ctx), "SetLimit": f.lims[i].SetLimit(PerSecond(1))} {
			if !errors.Is(err, ErrClosed) {
				f.t.Errorf("%s of a closed node: %v", method, err)
			}
		}
		if _, err := n.Limiter("new", PerSecond(1), nil); !errors.Is(err, ErrClosed) {
			f.t.Errorf("Limiter of a closed node: %v", err)
		}
		if err := n.Close(); err != nil {
			f.t.Errorf("Close once more: %v", err)
		}
		n.Stats()
		f.lims[i].Limit("key")
	}
}

// wantedOutcomes are those that must come about over all seeds together.
var wantedOutcomes = []string{"AllowN: nil", "WaitN: nil", "WaitN: hybrid: closed", "Peek: nil", "Reset: nil", "Flush: nil", "Limiter.Close: nil", "Node.Close: nil", "AllowN: hybrid: closed"}

// allSeen fails the test if an outcome that there should be never came about.
func allSeen(t *testing.T, seen map[string]int) {
	t.Helper()
	for _, wanted := range wantedOutcomes {
		if seen[wanted] == 0 {
			t.Errorf("never seen: %s", wanted)
		}
	}
}

// In virtual time, where a call that takes longer than it should is seen to the nanosecond.
func TestAnyMoment(t *testing.T) {
	seeds := uint64(9)
	if raceDetector {
		seeds = 3
	}
	if *full {
		seeds = 500
	}
	seen, played := map[string]int{}, uint64(0)
	for seed := range seeds {
		setup := fleetSetup{nodes: 3, limit: PerSecond(40)}
		setup.limiter = LimiterOptions{Accuracy: accuracies[seed%3], OnFailure: FailurePolicy(seed / 3 % 3)}
		setup.rtt = randomTrip
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, setup, func(f *fleet) {
				played++
				anyMoment(f, seen, seed, 2*time.Second, time.Millisecond, seed%2 == 0)
				time.Sleep(2 * time.Second) // calls that nobody waits for come back
			})
		})
	}
	if played == seeds { // and not one seed alone, as -run may select it
		allSeen(t, seen)
	}
}

// On a real Redis, where goroutines run at the same time.
func TestAnyMomentOnRedis(t *testing.T) {
	const seeds = 3
	before := runtime.NumGoroutine()
	seen, played := map[string]int{}, 0
	for seed := range uint64(seeds) {
		setup := fleetSetup{nodes: 3, limit: PerSecond(40), limiter: LimiterOptions{OnFailure: FailurePolicy(seed)}}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onRedis(t, setup, func(f *fleet) {
				played++
				anyMoment(f, seen, seed, 1500*time.Millisecond, 5*time.Second, seed > 0)
			})
		})
	}
	redistest.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	if played == seeds {
		allSeen(t, seen)
	}
}

// Callers that leave at any moment cost no tokens but those of calls that were
// under way, and nobody else's.
func TestLeavingCallersCloseTheBooks(t *testing.T) {
	limit := slow(2000)
	for seed := range uint64(6) {
		setup := fleetSetup{nodes: 3, limit: limit, rtt: randomTrip, limiter: LimiterOptions{Accuracy: []Accuracy{Strict, Exact}[seed%2]}}
		setup.options.StoreTimeout = 200 * time.Millisecond
		inBubble(t, setup, func(f *fleet) {
			rng := rand.New(rand.NewPCG(seed, 7))
			var all sync.WaitGroup
			var mu sync.Mutex
			var admitted, left int64
			for range 400 {
				time.Sleep(time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond)))
				l, cost, patience := f.lims[rng.IntN(3)], 1+rng.Int64N(4), time.Duration(rng.Int64N(int64(12*time.Millisecond)))
				all.Go(func() {
					done, cancel := context.WithTimeout(ctx, patience)
					defer cancel()
					r, err := l.AllowN(done, "k", cost)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err != nil && !errors.Is(err, context.DeadlineExceeded):
						t.Errorf("AllowN: %v", err)
					case err != nil:
						left += cost
					case r.Allowed:
						admitted += cost
					}
				})
			}
			all.Wait()
			f.leaveAll()
			used := f.state("k", limit)
			if least, most := float64(admitted)-0.5, float64(admitted+left); used.Used < least || used.Used > most || used.Lent != 0 || left == 0 {
				t.Errorf("%v used and %d lent of %d admitted; those who left asked for %d", used.Used, used.Lent, admitted, left)
			}
		})
	}
}
