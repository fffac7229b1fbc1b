package law

import (
	"math"
	"time"
)

// Service is what is planned.
type Service struct {
	Nodes int
	Keys  int
	Skew  float64       // of the keys' popularity: key number k has a share of k^-Skew
	Rate  float64       // requests per second in all
	Burst float64       // tokens of each key's limit
	Fill  time.Duration // in which an empty bucket fills
	Over  float64       // of the accuracy: floors on top of the limit, as a part of it

	Sync  time.Duration // Options.SyncInterval; 0: its default
	Since time.Duration // how long the load has lasted; 0: for ever
}

// Cost is what a service costs, per second where it does not say otherwise.
type Cost struct {
	Asked    float64 // operations that requests wait for
	Refilled float64 // operations that refill slices and renew their leases
	Paced    float64 // operations that share what a used-up limit earns

	Marks  float64 // times that an account is marked as scarce
	Listed float64 // accounts that each node reads with each poll of the marks
	Polls  float64 // such polls

	Calls      float64 // round trips of the whole fleet
	Sent       float64 // bytes to the store
	Received   float64 // bytes from it
	Remembered float64 // keys that a node remembers
}

// Operations is how many accounts are settled.
func (c Cost) Operations() float64 { return c.Asked + c.Refilled + c.Paced }

// Predict is the law.
func (s Service) Predict() (c Cost) {
	if s.Sync == 0 {
		s.Sync = 100 * time.Millisecond
	}
	s.each(func(rate, keys float64) {
		k := s.key(rate)
		c.Asked += keys * k.Asked
		c.Refilled += keys * k.Refilled
		c.Paced += keys * k.Paced
		c.Marks += keys * k.Marks
		c.Listed += keys * k.Listed
	})
	c.Remembered = s.remember()
	s.carry(&c)
	return c
}

// each calls a function for all keys: with the rate of one, and how many are like
// it. The most popular are taken one by one, the others in groups of ranks that
// differ by a 16th.
func (s Service) each(do func(rate, keys float64)) {
	total := s.mass(0.5, float64(s.Keys)+0.5)
	for first := 1; first <= s.Keys; {
		next := min(first+max(first/16, 1), s.Keys+1)
		keys := float64(next - first)
		do(s.Rate*s.mass(float64(first)-0.5, float64(next)-0.5)/total/keys, keys)
		first = next
	}
}

// mass is the unnormalised popularity of the ranks between two halves. The most
// popular ranks are summed up; beyond them the sum is nearly an integral.
func (s Service) mass(from, to float64) (sum float64) {
	const summed = 64
	for k := from + 0.5; k < to && k < summed; k++ {
		sum += math.Pow(k, -s.Skew)
	}
	if from = max(from, summed-0.5); to <= from {
		return sum
	}
	if e := 1 - s.Skew; math.Abs(e) > 1e-9 {
		return sum + (math.Pow(to, e)-math.Pow(from, e))/e
	}
	return sum + math.Log(to/from)
}
