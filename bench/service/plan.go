package service

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hybridlimit/hybrid/internal/zipf"
)

// Plan is what a run offers, and to how many nodes.
type Plan struct {
	Nodes  int
	Rate   int     // requests per second, on all nodes together
	Keys   int     // different keys
	Zipf   float64 // exponent of their popularity
	Limit  int64   // tokens per Period, of each key
	Period time.Duration
	Seed   uint64

	Warmup   time.Duration // under load, before anything is counted
	Settling time.Duration // from when the books are opened, which takes some of the machine, until latencies count
	Measured time.Duration
	Profiled time.Duration // under load, after it; 0: no profile
}

// witnesses is how many requests of the limiter there are for one of the empty one.
const witnesses = 20

// ramp is how long the load grows at the beginning of the warm-up. A fleet that met all
// of it at once, with nothing in its slices and floors, would ask Redis for each request.
func (p Plan) ramp() time.Duration { return p.Warmup / 2 }

// title says what is offered.
func (p Plan) title() string {
	return fmt.Sprintf("%d nodes in one process, %d requests/s, %d keys (Zipf %v), %s each",
		p.Nodes, p.Rate, p.Keys, p.Zipf, limitText(p.Limit, p.Period))
}

func limitText(n int64, period time.Duration) string {
	if period == time.Minute {
		return fmt.Sprintf("%d/min", n)
	}
	return fmt.Sprintf("%d/%v", n, period)
}

// from, until and end are moments of a run, from its beginning: latencies count for
// arrivals from the first to the second, and the load ends with the third.
func (p Plan) from() time.Duration  { return p.Warmup + p.Settling }
func (p Plan) until() time.Duration { return p.from() + p.Measured }
func (p Plan) end() time.Duration   { return p.until() + p.Profiled }

// request is one arrival, and what became of it. Times are ns from the run's beginning.
type request struct {
	due   int64 // when it arrives
	began int64 // when the call was made
	took  int64 // how long the call took
	key   int32 // its rank, 1 is the most popular
	node  uint8 // which limiter is asked; witness is the empty one
	answer
}

// answer is what a limiter said.
type answer struct {
	allowed bool
	path    uint8 // a name in the subject's list of paths
}

// witness is the node of a request for the empty limiter.
const witness = math.MaxUint8

// schedule draws all arrivals of a run. The same plan has the same ones.
func (p Plan) schedule() []request {
	rng := rand.New(rand.NewPCG(p.Seed, 1))
	keys := zipf.New(p.Keys, p.Zipf)
	rate := float64(p.Rate) * (1 + 1.0/witnesses) / float64(time.Second)
	length := float64(p.end())
	mean := rate * length
	all := offHeap(int(mean + 6*math.Sqrt(mean) + 16)) // a stream is longer than that once in a billion runs
	n := 0
	for due := rng.ExpFloat64() / rate; due < length && n < len(all); due += rng.ExpFloat64() / rate {
		if due < rng.Float64()*float64(p.ramp()) {
			continue
		}
		r := request{due: int64(due), key: int32(keys.Draw(rng)), node: uint8(rng.IntN(p.Nodes))}
		if rng.IntN(witnesses+1) == 0 {
			r.node = witness
		}
		all[n] = r
		n++
	}
	return all[:n]
}
