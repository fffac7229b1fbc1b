package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Arrivals is how requests are spread over time, at a given mean rate. It is
// comparable; its zero value is Poisson.
type Arrivals struct {
	Batch   int           // so many come at one moment; 0 or 1: they come one by one
	On, Off time.Duration // they come during On and pause during Off; 0: no pauses
}

// Poisson is arrivals that know nothing of each other.
var Poisson = Arrivals{}

// String is what Set reads.
func (a *Arrivals) String() string {
	switch {
	case a.Batch > 1:
		return fmt.Sprintf("batch:%d", a.Batch)
	case a.On > 0:
		return fmt.Sprintf("onoff:%v:%v", a.On, a.Off)
	}
	return "poisson"
}

// Set reads "poisson", "batch:SIZE" or "onoff:ON:OFF".
func (a *Arrivals) Set(s string) error {
	f := strings.Split(s, ":")
	switch {
	case s == "poisson":
		*a = Poisson
		return nil
	case f[0] == "batch" && len(f) == 2:
		if n, err := strconv.Atoi(f[1]); err == nil && n >= 1 {
			*a = Arrivals{Batch: n}
			return nil
		}
	case f[0] == "onoff" && len(f) == 3:
		on, err1 := time.ParseDuration(f[1])
		off, err2 := time.ParseDuration(f[2])
		if err1 == nil && err2 == nil && on > 0 && off > 0 {
			*a = Arrivals{On: on, Off: off}
			return nil
		}
	}
	return errors.New("allowed poisson, batch:SIZE or onoff:ON:OFF")
}

// arrival is one request of a run, before anybody has seen it.
type arrival struct {
	at      time.Duration // since the start
	key     int32
	cost    int64
	stretch *stretch
}

// traffic is all arrivals of a run, in order of time and at different times.
type traffic struct {
	arrivals Arrivals
	line     []stretch
	rng      *rand.Rand
	keys     *population
	cost     int64
	costs    *rand.Rand // nil: all cost the same

	at   time.Duration // of the last one
	left int           // of its batch
}

func newTraffic(e Experiment, keys *population) *traffic {
	line := e.stretches()
	for i := range line {
		line[i].rate *= keys.part
	}
	t := &traffic{arrivals: e.Arrivals, line: line, rng: e.random("arrivals"), keys: keys, cost: e.Cost}
	if e.Mixed {
		t.costs = e.random("costs")
	}
	return t
}

func (t *traffic) drawCost() int64 {
	if t.costs == nil {
		return t.cost
	}
	return 1 + t.costs.Int64N(t.cost)
}

// next is the next arrival; false if there is none.
func (t *traffic) next() (a arrival, ok bool) {
	for len(t.line) > 0 {
		now := &t.line[0]
		if at, ok := t.within(now); ok {
			t.at = at
			return arrival{at: at, key: t.keys.draw(), cost: t.drawCost(), stretch: now}, true
		}
		t.at, t.left, t.line = now.to, 0, t.line[1:]
	}
	return a, false
}

// within draws the time of the next arrival, if it is in a stretch. What is left
// of a gap at its end is drawn anew: a Poisson process has no memory.
func (t *traffic) within(now *stretch) (at time.Duration, ok bool) {
	if now.rate == 0 {
		return 0, false
	}
	if t.left > 0 { // one moment, told apart by a nanosecond
		t.left--
		return t.at + 1, true
	}
	batch := max(t.arrivals.Batch, 1)
	gap := t.rng.ExpFloat64() * float64(batch) / now.rate * float64(time.Second)
	if gap > float64(now.to-t.at+2*(t.arrivals.On+t.arrivals.Off)) {
		return 0, false // also keeps a gap of years from overflowing
	}
	at = t.arrivals.after(t.at, time.Duration(gap)) + 1
	t.left = batch - 1
	return at, at < now.to
}

// after is the moment a gap later, if only On counts: that passes faster, by as
// much as pauses take away.
func (a Arrivals) after(at, gap time.Duration) time.Duration {
	if a.On == 0 {
		return at + gap
	}
	cycle := a.On + a.Off
	gap = time.Duration(float64(gap) * float64(a.On) / float64(cycle))
	at -= max(0, at%cycle-a.On) // a pause counts as its beginning
	for {
		left := a.On - at%cycle
		if gap < left {
			return at + gap
		}
		gap -= left
		at += left + a.Off
	}
}
