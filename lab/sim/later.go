package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Refunds is how much of what was admitted is given back later. The zero value is
// nothing.
type Refunds struct {
	Part  float64       // of the admitted requests, whole or in part
	Delay time.Duration // until then, on average
}

// Charges is how often the cost of a request turns out to be higher, whether or not
// it was admitted. The zero value is never.
type Charges struct {
	Part  float64       // of the requests
	Delay time.Duration // until then, on average
	Most  float64       // the largest charge, in bursts; most are far smaller
}

// String is what Set reads.
func (r *Refunds) String() string {
	if *r == (Refunds{}) {
		return ""
	}
	return fmt.Sprintf("%v:%v", r.Part, r.Delay)
}

// Set reads "PART:DELAY".
func (r *Refunds) Set(s string) (err error) {
	*r = Refunds{}
	if s == "" {
		return nil
	}
	f := strings.Split(s, ":")
	if len(f) != 2 {
		return errors.New("allowed PART:DELAY, like 0.2:3s")
	}
	r.Part, r.Delay, err = readLater(f[0], f[1])
	return err
}

// String is what Set reads.
func (c *Charges) String() string {
	if *c == (Charges{}) {
		return ""
	}
	return fmt.Sprintf("%v:%v:%v", c.Part, c.Delay, c.Most)
}

// Set reads "PART:DELAY:BURSTS".
func (c *Charges) Set(s string) (err error) {
	*c = Charges{}
	if s == "" {
		return nil
	}
	f := strings.Split(s, ":")
	if len(f) != 3 {
		return errors.New("allowed PART:DELAY:BURSTS, like 0.02:3s:1.5")
	}
	if c.Part, c.Delay, err = readLater(f[0], f[1]); err != nil {
		return err
	}
	if c.Most, err = strconv.ParseFloat(f[2], 64); err != nil || !(c.Most > 0 && c.Most <= mostBursts) {
		return fmt.Errorf("BURSTS %q, allowed up to %v", f[2], mostBursts)
	}
	return nil
}

const mostBursts = 100.0

func readLater(text, delay string) (part float64, d time.Duration, err error) {
	if part, err = strconv.ParseFloat(text, 64); err != nil || !(part > 0 && part <= 1) {
		return 0, 0, fmt.Errorf("PART %q, allowed above 0 and up to 1", text)
	}
	if d, err = time.ParseDuration(delay); err != nil || d < time.Millisecond || d > time.Hour {
		return 0, 0, fmt.Errorf("DELAY %q, allowed 1ms to 1h", delay)
	}
	return part, d, nil
}

// changesLater says whether costs become known later.
func (e Experiment) changesLater() bool { return e.Refunds.Part > 0 || e.Charges.Part > 0 }

// change is a refund or a charge that is to come.
type change struct {
	wait   time.Duration // after the answer, or after the change before it
	tokens int64
	refund bool
	charge bool // it refunds a charge
	here   bool // by the node that was asked; else by any
}

// changesOf draws what becomes known of a request later, in order of time. Which
// request it is decides, so that it does not matter which is answered first.
func (e *Experiment) changesOf(r *request) (all []change) {
	if !e.changesLater() {
		return nil
	}
	rng := rand.New(rand.NewPCG(e.Seed^0x1a7e, uint64(r.number)))
	if r.allowed && rng.Float64() < e.Refunds.Part {
		all = append(all, e.refundsOf(r.cost, rng)...)
	}
	if rng.Float64() < e.Charges.Part {
		all = append(all, e.chargesOf(r.cost, rng)...)
	}
	return all
}

// refundsOf gives a cost back: half of them whole, the others in part, in one piece
// or in two.
func (e *Experiment) refundsOf(cost int64, rng *rand.Rand) (all []change) {
	left := cost
	if rng.IntN(2) == 0 {
		left = 1 + rng.Int64N(cost)
	}
	for left > 0 {
		n := left
		if rng.IntN(4) == 0 {
			n = 1 + rng.Int64N(left)
		}
		all = append(all, change{wait: draw(e.Refunds.Delay, rng), tokens: n, refund: true, here: rng.IntN(2) == 0})
		if left -= n; len(all) == 2 {
			break
		}
	}
	return all
}

// chargesOf charges about as much as the request cost, and now and then as much as
// may be. Of some charges a part turns out to be wrong.
func (e *Experiment) chargesOf(cost int64, rng *rand.Rand) (all []change) {
	n := 1 + rng.Int64N(2*cost)
	if rng.IntN(5) == 0 {
		n = 1 + rng.Int64N(max(int64(e.Charges.Most*float64(e.Limit.Burst())), 1))
	}
	all = append(all, change{wait: draw(e.Charges.Delay, rng), tokens: n, here: rng.IntN(2) == 0})
	if rng.IntN(4) == 0 {
		back := change{wait: draw(e.Charges.Delay, rng), tokens: 1 + rng.Int64N(n), refund: true, charge: true}
		all = append(all, back)
	}
	return all
}

// draw is a delay: exponential, and never more than ten times the mean.
func draw(mean time.Duration, rng *rand.Rand) time.Duration {
	return min(time.Duration(rng.ExpFloat64()*float64(mean)), 10*mean)
}

// after lets what becomes known of a request later happen. What would be later than
// the run is left out.
func (c *crowd) after(r *request) {
	all := c.e.changesOf(r)
	if all == nil || c.changer == nil {
		return
	}
	key, node, ideal := r.key, int(r.node), r.ideal
	c.all.Go(func() {
		for _, ch := range all {
			if time.Since(c.start)+ch.wait >= c.e.Warm+c.e.Span {
				return
			}
			time.Sleep(ch.wait)
			c.changer.change(c.chooseFor(ch, node), c.names[key], ch, ideal || ch.charge)
		}
	})
}

// chooseFor returns the node that makes a change: the one that was asked if it is
// still there, or any.
func (c *crowd) chooseFor(ch change, asked int) int {
	nodes := c.nodes()
	for _, n := range nodes {
		if ch.here && n == asked {
			return n
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return nodes[c.placer.rng.IntN(len(nodes))]
}
