package hybrid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/internal/redistest"
)

// This file is calls at any moment: all methods at once, contexts that end
// anywhere, limiters and nodes that close in the middle of everything, over links
// that fail. Every call has one of its documented outcomes, and nothing is left.

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
		"AllowN": leaving, "Peek": leaving, "WaitN": append([]error{ErrExceedsBurst}, leaving...), "AllowAll": leaving,
		"Refund": {ErrClosed}, "Charge": {ErrClosed}, "SetLimit": {ErrClosed}, "Limiter": {ErrClosed, ErrDuplicateLimiter},
		// These four also say what kept Redis from it.
		"Reset": nil, "Flush": nil, "Limiter.Close": nil, "Node.Close": nil,
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
	f := m.f
	node := rng.IntN(len(f.nodes))
	n, l := f.nodes[node], m.limiter(rng, node)
	key, cost := fmt.Sprint("key ", rng.IntN(4)), int64(rng.IntN(30))
	done, cancel := context.WithCancel(ctx)
	defer cancel()
	var patience time.Duration // of who waits for more than the store
	switch rng.IntN(3) {
	case 0:
		patience = time.Duration(rng.Int64N(int64(30 * time.Millisecond)))
		done, cancel = context.WithTimeout(done, patience)
		defer cancel()
	case 1:
		patience = time.Duration(rng.Int64N(int64(30 * time.Millisecond)))
		t := time.AfterFunc(patience, cancel)
		defer t.Stop()
	default:
		patience = time.Second
		done, cancel = context.WithTimeout(done, patience)
		defer cancel()
	}
	storeTimeout := n.opts.StoreTimeout
	start := time.Now()
	var method string
	var err error
	most := storeTimeout + slack
	switch rng.IntN(60) {
	case 0:
		method, most = "Flush", patience+slack
		err = n.Flush(done)
	case 1:
		method = "Reset"
		err = l.Reset(done, key)
	case 2:
		method = "SetLimit"
		err = l.SetLimit(PerSecond(rng.Int64N(100)))
	case 3:
		method, most = "Limiter.Close", closeTimeout+slack
		if l.Name() != "api" {
			err = l.Close()
		}
	case 4, 5, 6:
		method, most = "WaitN", patience+storeTimeout+slack
		err = l.WaitN(done, key, cost)
	case 7, 8:
		method = "Peek"
		_, err = l.Peek(done, key)
	case 9, 10:
		method = "Charge"
		err = l.Charge(done, key, cost)
	case 11, 12:
		method = "Refund"
		err = l.Refund(done, key, cost)
	case 13, 14:
		method, most = "AllowAll", 2*storeTimeout+slack
		_, err = n.AllowAll(done, Check{f.lims[node], key, cost}, Check{f.lims[node], key, 1})
	case 15:
		n.Stats()
		return
	default:
		method = "AllowN"
		var r Result
		if r, err = l.AllowN(done, key, cost); err != nil && r != (Result{}) {
			f.t.Errorf("a result beside the error: %+v, %v", r, err)
		}
	}
	m.outcome(method, err, time.Since(start), most)
}

// limiter picks the limiter of the fleet, or one that closes now and then.
func (m *moments) limiter(rng *rand.Rand, node int) *Limiter {
	if rng.IntN(3) > 0 {
		return m.f.lims[node]
	}
	start := time.Now()
	l, err := m.f.nodes[node].Limiter(fmt.Sprint("other ", rng.IntN(3)), PerSecond(50), &LimiterOptions{Accuracy: Accuracy(rng.IntN(3)), OnFailure: FailurePolicy(rng.IntN(3))})
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
			way.cut(true)
			time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
			way.cut(false)
		default:
			way.inject([]fault{refused, cutBefore, cutAfter, swallowed}[rng.IntN(4)])
		}
	}
}

// anyMoment lets callers loose on a fleet for a while, in the middle of which nodes close, one after the other.
func anyMoment(f *fleet, seed uint64, span, slack time.Duration, faults bool) {
	m := &moments{f: f, seen: map[string]int{}}
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
	for _, wanted := range []string{"AllowN: nil", "WaitN: nil", "WaitN: hybrid: closed", "Peek: nil", "Reset: nil", "Flush: nil", "Limiter.Close: nil", "Node.Close: nil", "AllowN: hybrid: closed"} {
		if m.seen[wanted] == 0 {
			f.t.Logf("never seen: %s", wanted)
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
	for seed := range seeds {
		setup := fleetSetup{nodes: 3, limit: PerSecond(40)}
		setup.limiter = LimiterOptions{Accuracy: Accuracy(seed % 3), OnFailure: FailurePolicy(seed / 3 % 3)}
		setup.rtt = randomTrip
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, setup, func(f *fleet) {
				anyMoment(f, seed, 2*time.Second, time.Millisecond, seed%2 == 0)
				time.Sleep(2 * time.Second) // calls that nobody waits for come back
			})
		})
	}
}

// On a real Redis, where goroutines run at the same time.
func TestAnyMomentOnRedis(t *testing.T) {
	before := runtime.NumGoroutine()
	for seed := range uint64(3) {
		setup := fleetSetup{nodes: 3, limit: PerSecond(40), limiter: LimiterOptions{OnFailure: FailurePolicy(seed)}}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onRedis(t, setup, func(f *fleet) { anyMoment(f, seed, 1500*time.Millisecond, 5*time.Second, seed > 0) })
		})
	}
	redistest.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
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
