package hybrid

import (
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Hooks are told of rare events. They are called one at a time from a goroutine
// of the node, through a queue of 64 events: when a hook is so slow that it
// fills, events are dropped and counted (Stats.HooksDropped). A panic of a hook
// is recovered and logged.
type Hooks struct {
	// Store is called when the node stops waiting for Redis and when it
	// relies on it again.
	Store func(StoreEvent)
}

// StoreEvent is a change in the health of Redis as a node sees it.
type StoreEvent struct {
	Down bool      // true: nobody waits for Redis from now on
	Err  error     // what was last seen to fail; nil when Redis is back
	At   time.Time // by the node's wall clock
}

// events hands events to the log and to the hooks, away from whoever saw them.
type events struct {
	hooks   Hooks
	logger  *slog.Logger
	queue   chan StoreEvent
	done    chan struct{}
	dropped atomic.Uint64

	// Owned by the goroutine. A store that comes and goes all the time must not
	// fill the log: beyond the first few outages one in ten seconds is logged,
	// always with its end.
	outages    rate.Sometimes
	loggedDown bool
}

const eventQueue = 64

func newEvents(hooks Hooks, logger *slog.Logger) *events {
	e := &events{
		hooks:   hooks,
		logger:  logger,
		queue:   make(chan StoreEvent, eventQueue),
		done:    make(chan struct{}),
		outages: rate.Sometimes{First: 3, Interval: 10 * time.Second},
	}
	go e.run()
	return e
}

// storeChanged queues an event. It never blocks.
func (e *events) storeChanged(down bool, cause error) {
	select {
	case e.queue <- StoreEvent{Down: down, Err: cause, At: time.Now()}:
	default:
		e.dropped.Add(1)
	}
}

func (e *events) run() {
	for {
		select {
		case ev := <-e.queue:
			e.tell(ev)
		case <-e.done:
			return
		}
	}
}

func (e *events) tell(ev StoreEvent) {
	defer func() {
		if p := recover(); p != nil {
			e.logger.Error("hybrid: a hook panicked", "panic", p)
		}
	}()
	switch {
	case ev.Down:
		e.outages.Do(func() {
			e.logger.Warn("hybrid: Redis does not answer; limiters follow their failure policy", "error", ev.Err)
			e.loggedDown = true
		})
	case e.loggedDown:
		e.logger.Info("hybrid: Redis answers again")
		e.loggedDown = false
	}
	if e.hooks.Store != nil {
		e.hooks.Store(ev)
	}
}

// stop ends the goroutine after the event it is at. A hook that never returns
// is left behind.
func (e *events) stop() { close(e.done) }
