package peer

import (
	"context"
	"time"
)

// Limiter is what a contestant is asked: may a request of this key pass? Any
// number of goroutines may ask. An error is no answer, and counts as such.
type Limiter interface {
	Allow(key string) (bool, error)
	Close() error
}

// Kind is a contestant before it is set up.
type Kind struct {
	Name   string
	Module string // the module whose version counts; "" for what is of this repository
	Keeps  string // what it stores per key, and where
	Rule   string // what it enforces
	Place  Place
	Floor  bool // no limiter, but what a limiter cannot do without
	Busy   int  // the most keys that one benchmark can keep busy, as it needs them; 0: any number
	Open   func(Setup) (Limiter, error)
}

// Place is where a contestant decides. It is a set.
type Place uint8

const (
	Memory  Place = 1 << iota // in the process
	Redis                     // it needs a Redis
	OneKey                    // it knows one key alone
	Unasked                   // cold keys far from the limit do not ask Redis, once the node is old enough
)

// Has reports whether all of q is in the set.
func (p Place) Has(q Place) bool { return p&q == q }

// Setup is what all contestants are given alike.
type Setup struct {
	Limit   Limit
	Redis   string // address of a server
	Prefix  string // of all keys there; another one for each contestant and run
	Keys    int    // how many keys will come, about
	Servers int    // how many of these share the limit
}

// Limit is Count per Period, with a burst of Count.
type Limit struct {
	Count  int64
	Period time.Duration
}

// Most is the most that a perfect limiter admits in a time: the burst and the refill.
func (l Limit) Most(t time.Duration) float64 {
	return float64(l.Count) * (1 + t.Seconds()/l.Period.Seconds())
}

var background = context.Background()
