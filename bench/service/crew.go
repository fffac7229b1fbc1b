package service

import (
	"context"
	"sync"
	"time"
)

// crew makes the calls of one run when they are due. Whoever of it is awake takes the
// next arrival; the rules that keep somebody awake are in the package's comment.
type crew struct {
	// Immutable.
	requests []request // in the order in which they are due
	call     func(*request)
	most     int  // members, and so calls under way at once
	frail    bool // gives up when it would take more
	begin    time.Time
	pause    func(time.Duration) // sleeps; called by one member at a time

	members sync.WaitGroup

	mu       sync.Mutex
	next     int  // the first request that nobody has taken
	size     int  // members
	calls    int  // under way
	busiest  int  // the most that were
	full     bool // arrivals had to wait until a call returned
	resting  int  // members that wait for wake
	relief   bool // somebody was woken and has not come yet
	sleeping bool // somebody sleeps until the next arrival
	stopped  bool // what nobody has taken is not called any more
	closed   bool // wake is closed
	wake     chan struct{}
}

// nap is the least that anybody sleeps. Arrivals in it are made together, as a server
// gets to know of several requests at once when it looks; a wake-up for each would take
// half a core.
const nap = 100 * time.Microsecond

// newCrew prepares the calls of a run that begins now.
func newCrew(requests []request, most int, call func(*request)) *crew {
	return &crew{requests: requests, call: call, most: most, begin: time.Now(), pause: time.Sleep, wake: make(chan struct{}, most)}
}

// now is ns since the run's beginning.
func (c *crew) now() int64 { return int64(time.Since(c.begin)) }

// run makes all calls and returns when each has returned, or when ctx has ended and
// those under way have returned.
func (c *crew) run(ctx context.Context) {
	defer context.AfterFunc(ctx, c.stop)()
	c.mu.Lock()
	c.relief = true
	c.hire()
	c.mu.Unlock()
	c.members.Wait()
}

// stop lets no further call begin.
func (c *crew) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// hire adds a member. The caller holds mu.
func (c *crew) hire() {
	c.size++
	c.members.Go(c.serve)
}

// serve is a member's life: it calls, sleeps until the next arrival, or rests, until
// there are no arrivals.
func (c *crew) serve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.relief = false
	for !c.over() {
		r := &c.requests[c.next]
		switch early := r.due - c.now(); {
		case early <= 0:
			c.answer(r)
		case c.sleeping:
			c.rest()
		default:
			c.sleep(time.Duration(early))
		}
	}
}

// over reports whether nothing is left to take, and then sends home who rests. The
// caller holds mu.
func (c *crew) over() bool {
	if !c.stopped && c.next < len(c.requests) {
		return false
	}
	if !c.closed {
		c.closed = true
		close(c.wake)
	}
	return true
}

// answer takes a request and makes its call, without the lock. The caller holds mu.
func (c *crew) answer(r *request) {
	c.next++
	c.relieve()
	c.calls++
	c.busiest = max(c.busiest, c.calls)
	c.mu.Unlock()
	c.call(r)
	c.mu.Lock()
	c.calls--
}

// relieve sees to it that somebody looks after the next arrival while the caller, who
// holds mu, makes a call.
func (c *crew) relieve() {
	switch {
	case c.relief || c.sleeping:
	case c.resting > 0:
		c.resting--
		c.relief = true
		c.wake <- struct{}{} // has room: one for each who rests
	case c.size < c.most:
		c.relief = true
		c.hire()
	default:
		c.full = true
		c.stopped = c.stopped || c.frail
	}
}

// rest waits until somebody needs a relief. The caller holds mu.
func (c *crew) rest() {
	c.resting++
	c.mu.Unlock()
	<-c.wake
	c.mu.Lock()
	c.relief = false
}

// sleep waits for the next arrival. The caller holds mu.
func (c *crew) sleep(d time.Duration) {
	c.sleeping = true
	c.mu.Unlock()
	c.pause(max(d, nap))
	c.mu.Lock()
	c.sleeping = false
}
