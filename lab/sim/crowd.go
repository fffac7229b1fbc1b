package sim

import (
	"sync"
	"time"
)

// crowd is the callers: it offers each request at its time, and none of them
// waits for the answer of another.
//
// A goroutine per request would cost more than most answers do. Instead a few
// workers take turns: each takes the next arrival, sleeps until it is due, and
// asks. One who wakes makes sure that another is asleep until the arrival after
// his own, so an answer that takes long delays nobody.
type crowd struct {
	subject Subject
	nodes   func() []int // who is there
	judge   *judge
	start   time.Time
	names   []string // of keys
	e       *Experiment
	changer changer

	mu      sync.Mutex
	traffic *traffic
	placer  *placer
	asleep  int   // workers that have taken an arrival which is not due yet
	count   int64 // arrivals that were due
	all     sync.WaitGroup
}

// enough workers asleep make one more superfluous.
const enough = 2

// run offers all requests, and returns when each has its answer.
func (c *crowd) run() {
	c.all.Go(c.work)
	c.all.Wait()
}

func (c *crowd) work() {
	for {
		a, ok := c.take()
		if !ok {
			return
		}
		time.Sleep(a.at - time.Since(c.start))
		r := c.rise(a)
		besides := c.e.asideOf(&r)
		c.ask(&r, besides)
		c.judge.happened(r)
		c.after(&r)
		c.follow(&r, besides)
	}
}

// take takes the next arrival; false if there is none, or enough others wait.
func (c *crowd) take() (arrival, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asleep >= enough {
		return arrival{}, false
	}
	a, ok := c.traffic.next()
	if ok {
		c.asleep++
	}
	return a, ok
}

// rise makes a request of an arrival that is due.
func (c *crowd) rise(a arrival) request {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep--
	if c.asleep == 0 {
		c.all.Go(c.work)
	}
	c.count++
	r := request{number: c.count, asked: time.Now().UnixNano(), key: a.key, cost: a.cost, stretch: a.stretch}
	r.node = int32(c.placer.choose(a.stretch.place, c.nodes(), a.at, c.names[a.key]))
	c.judge.offered(&r)
	return r
}

func (c *crowd) ask(r *request, besides aside) {
	ask := c.subject.Ask
	if besides == allOf && c.changer != nil {
		ask = c.changer.askAll
	}
	answer := ask(int(r.node), c.names[r.key], r.cost)
	r.delay = time.Now().UnixNano() - r.asked
	r.at, r.allowed, r.blocked, r.policy, r.floor = answer.At, answer.Allowed, answer.Blocked, answer.Policy, answer.Floor
}
