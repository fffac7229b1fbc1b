package modelcheck

import "github.com/hybridlimit/hybrid/slice"

// Sizes of a World, which is a value without pointers.
const (
	maxNodes  = 4
	maxLate   = 3 // settles without a caller that may still run
	maxLeeway = 2 // faults that loosen the promise
)

// start is when a world begins, in µs of true time: late enough for epochs to
// have numbers above 0, early enough for a node's ticks not to wrap.
const start = 16 * slice.Epoch

// Setup is what a world consists of and what may happen in it.
type Setup struct {
	Nodes int
	Rules []slice.Rule // the limit, and what it may be changed to
	Costs []int64      // tokens, of a request
	Asks  []Ask        // the settles that nodes make
	Steps []int64      // µs, the times that may pass at once
	Edges bool         // time may also pass up to, or just beyond, the next moment at which something ends
	Jumps []int64      // µs, the steps that the store's clock may make

	// Patience is how long a node waits for a reply, in µs; 0 = for ever. What it
	// then no longer waits for may still run.
	Patience int64
	Faults   Faults // how often what may go wrong, goes wrong
	Flaw     Flaw   // the rule that this world's protocol lacks

	// Literal is a promise that nobody makes: a step of the clock back permits nothing.
	Literal bool
}

// Ask is a kind of settle. What it reports is up to the slice.
type Ask struct {
	Needs    []slice.Need
	Keep     int64   // tokens that may stay in the slice; the others are returned
	Want     int64   // tokens to be granted, 0 = none
	Least    int64   // 0 = 1
	Unit     int64   // 0 = 1
	Divisor  int64   // 0 = 1
	Charged  float64 // used without asking; negative: a refund
	Fallback float64 // admitted while the store was away
}

// all keeps the whole slice.
const all = slice.MaxSlice

// Faults counts what may yet go wrong.
type Faults struct {
	Lost      uint8 // settles whose outcome nobody learns: not executed yet, or executed and the reply lost
	NotRun    uint8 // settles that certainly were not executed
	Crashes   uint8 // nodes that start again with nothing
	Losses    uint8 // restarts of the store without its data
	Copies    uint8 // moments at which the replica is up to date
	Failovers uint8 // replicas that take over, as of their last copy
	Jumps     uint8 // steps of the store's clock
	Changes   uint8 // nodes that hear of another limit
	Refunds   uint8 // admissions that did not happen after all
	Charges   uint8 // costs that nobody was asked for
	Resends   uint8 // replies that the client takes for lost and sends the settle again; only with the flaw
}

// widest is the limit of the promise: the largest burst and rate of all.
func (s *Setup) widest() slice.Rule {
	w := s.Rules[0]
	for _, r := range s.Rules {
		w.Burst, w.Rate = max(w.Burst, r.Burst), max(w.Rate, r.Rate)
	}
	return w
}

// slowest is the lowest rate of all limits.
func (s *Setup) slowest() float64 {
	rate := s.Rules[0].Rate
	for _, r := range s.Rules {
		rate = min(rate, r.Rate)
	}
	return rate
}

func epochOf(us int64) int64 { return us / slice.Epoch }
