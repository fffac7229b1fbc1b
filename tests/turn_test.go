package tests_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// Nodes hold slices while another waits for its turn, and use them when it comes.
// Strict promises B + r·t in every interval.
func TestATurnBesideSlicesKeepsTheBound(t *testing.T) {
	worst, best := 0.0, ""
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limit := int64([]int{20, 50, 100, 1000}[rnd.IntN(4)])
		period := []time.Duration{time.Second, 2 * time.Second, 10 * time.Second}[rnd.IntN(3)]
		cost := limit/2 + rnd.Int64N(limit/2) + 1
		load := 0.3 + 0.9*rnd.Float64()
		every := time.Duration(float64(period) / float64(limit) / load)
		pause := time.Duration(rnd.Int64N(int64(period / 4)))
		story(t, func(w *world) {
			a, b := w.node(hybrid.Options{}), w.node(hybrid.Options{})
			opts := hybrid.LimiterOptions{Accuracy: hybrid.Strict}
			la, lb := a.limiter("api", hybrid.Per(limit, period), opts), b.limiter("api", hybrid.Per(limit, period), opts)
			var mu sync.Mutex
			var seen []oracle.Admission
			admitted := func(cost int64) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, oracle.Admission{At: time.Now().UnixNano(), Cost: cost})
			}
			for range 3 * limit {
				if allow(t, lb, "k", 1).Allowed {
					admitted(1)
				}
				time.Sleep(every)
			}
			time.Sleep(pause)
			if err := la.WaitN(ctx, "k", cost); err != nil {
				t.Error(err)
			}
			admitted(cost)
			for range 2 * limit {
				if r := allow(t, lb, "k", 1); !r.Allowed {
					break
				}
				admitted(1)
			}
			if r := oracle.New(limit, period, limit).Check(seen); r.Excess/float64(limit) > worst {
				worst, best = r.Excess/float64(limit), r.String()
			}
		})
	}
	if worst > 0.01 {
		t.Errorf("%.0f %% of the burst beyond the bound: %s", 100*worst, best)
	}
}

// judged keeps what is admitted and refunded, for a judge of all intervals.
type judged struct {
	mu   sync.Mutex
	seen []oracle.Admission
}

func (j *judged) add(cost int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = append(j.seen, oracle.Admission{At: time.Now().UnixNano(), Cost: cost})
}

// While callers wait for turns others refund, leave and ask on two nodes. Tokens that a turn
// has taken ahead are there once, whatever frees others: in no interval, refunds aside, more
// than B + r·t is admitted.
func TestTurnsKeepTheBoundWhateverIsFreed(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		limit := int64([]int{10, 20, 60}[rnd.IntN(3)])
		period := []time.Duration{time.Second, 10 * time.Second, 80 * time.Second}[rnd.IntN(3)]
		var seen judged
		var turns atomic.Int64
		story(t, func(w *world) {
			var all sync.WaitGroup
			for range 2 {
				l := w.node(hybrid.Options{}).limiter("api", hybrid.Per(limit, period), hybrid.LimiterOptions{Accuracy: hybrid.Strict})
				for range 2 { // callers that wait, of which every second leaves in the end
					patience := time.Duration(float64(period) * (0.2 + 0.8*rnd.Float64()))
					cost := limit/2 + rnd.Int64N(limit/2) + 1
					all.Go(func() {
						for i := range 6 {
							late, cancel := context.WithCancel(ctx)
							if i%2 > 0 {
								time.AfterFunc(patience, cancel)
							}
							if l.WaitN(late, "k", cost) == nil {
								seen.add(cost)
								turns.Add(1)
							}
							cancel()
						}
					})
				}
				every := period / time.Duration(2*limit)
				all.Go(func() { // small costs, of which every third is refunded
					for i := range int(12 * limit) {
						if allow(t, l, "k", 1).Allowed {
							if i%3 > 0 {
								seen.add(1)
							} else if err := l.Refund("k", 1); err != nil {
								t.Error(err)
							}
						}
						time.Sleep(every)
					}
				})
			}
			all.Wait()
		})
		// A refund that is on its way when an interval begins is in it.
		if r := oracle.New(limit, period, limit).Check(seen.seen); r.Excess > 2 || turns.Load() < 6 {
			t.Errorf("seed %d, %d per %v, %d turns: %s", seed, limit, period, turns.Load(), r)
		}
	}
}
