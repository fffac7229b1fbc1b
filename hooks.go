package hybrid

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hybridlimit/hybrid/internal/cause"
	"github.com/hybridlimit/hybrid/internal/journal"
	"github.com/hybridlimit/hybrid/slice"
)

// Hooks are told of rare events. They are called one at a time from a goroutine
// of the node, through a queue of 64 events: when a hook is so slow that it
// fills, events are dropped and counted (Stats.HooksDropped). A panic of a hook
// is recovered; its type is logged, its value may be anything and is not.
type Hooks struct {
	// Store is called when the node stops waiting for Redis and when it
	// relies on it again.
	Store func(StoreEvent)
}

// StoreEvent is a change in the health of Redis as a node sees it. A Cluster or
// Ring is down when the first of its parts is, and well when all are.
type StoreEvent struct {
	Down bool // true: nobody waits for Redis, or for a part of it, from now on

	// Err is what was last seen to fail; nil when Redis is back. Its text may
	// hold addresses and names of users: the log says less. Only hooks are told it:
	// it is nil in Stats.
	Err error

	// Cause is what the log says of Err: a few words of a fixed set, the code of a
	// reply or the type of an error, and never an address, a name or a key. Empty
	// when Redis is back, and in Stats for the moment that it takes to find out.
	Cause string

	At time.Time // by the node's wall clock
}

// events hands events to the log and to the hooks, away from whoever saw them.
type events struct {
	hooks  Hooks
	logKey func(limiter, key string) string
	log    *journal.Journal
	logger *slog.Logger // writes to log
	queue  chan StoreEvent
	done   chan struct{}

	causes   cause.Reader
	failures *cause.Counts

	dropped  atomic.Uint64
	poisoned atomic.Uint64

	// What comes and goes all the time must not fill the log: beyond the first
	// few of a kind one in ten seconds is logged, an outage always with its end.
	accounts rate.Sometimes
	fleets   rate.Sometimes
	panics   rate.Sometimes

	mu         sync.Mutex
	outages    rate.Sometimes
	loggedDown bool
	latest     []*StoreEvent // the last mostEvents, oldest first; all of them, also those that are not logged
}

const (
	eventQueue = 64
	mostEvents = 32
)

func few() rate.Sometimes { return rate.Sometimes{First: 3, Interval: 10 * time.Second} }

func newEvents(opts *Options) *events {
	e := &events{
		hooks:    opts.Hooks,
		logKey:   opts.LogKey,
		log:      journal.New(opts.Logger.Handler()),
		queue:    make(chan StoreEvent, eventQueue),
		done:     make(chan struct{}),
		outages:  few(),
		accounts: few(),
		fleets:   few(),
		panics:   few(),
	}
	e.failures = cause.NewCounts(&e.causes)
	e.logger = e.log.Logger()
	go e.run()
	return e
}

// storeChanged logs a change, keeps it for Stats and queues it for the hook. It never
// blocks.
func (e *events) storeChanged(down bool, err error) {
	at := time.Now()
	e.logStore(down, err)
	e.keep(StoreEvent{Down: down, At: at}, err)
	if e.hooks.Store == nil {
		return
	}
	select {
	case e.queue <- StoreEvent{Down: down, Err: err, At: at}:
	default:
		e.dropped.Add(1)
	}
}

// keep adds a change to the latest ones, and lets its cause be found out.
func (e *events) keep(ev StoreEvent, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.latest) == mostEvents {
		e.latest = append(e.latest[:0], e.latest[1:]...)
	}
	e.latest = append(e.latest, &ev)
	if !ev.Down {
		return
	}
	tell := func(text string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		ev.Cause = text
	}
	if !e.causes.Read(err, tell) {
		ev.Cause = cause.Other
	}
}

// recent returns the latest changes, oldest first.
func (e *events) recent() []StoreEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]StoreEvent, len(e.latest))
	for i, ev := range e.latest {
		list[i] = *ev
	}
	return list
}

func (e *events) logStore(down bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case down:
		e.outages.Do(func() {
			e.logger.Warn("hybrid: Redis does not answer; limiters follow their failure policy", "cause", cause.Value{Err: err})
			e.loggedDown = true
		})
	case e.loggedDown:
		e.logger.Info("hybrid: Redis answers again")
		e.loggedDown = false
	}
}

// accountPoisoned counts and logs that Redis refuses one account alone. It
// never blocks.
func (e *events) accountPoisoned(limiter, key string, err error) {
	e.poisoned.Add(1)
	e.accounts.Do(func() {
		var name func() string
		if e.logKey != nil {
			name = func() string { return e.logKey(limiter, key) }
		}
		e.log.WarnOf(name, "hybrid: an account in Redis cannot be used; its requests follow the failure policy",
			"limiter", limiter, "cause", cause.Value{Err: err})
	})
}

// unregistered logs that a node does what it should but for its registration: its
// fleet is as last heard. It never blocks.
func (e *events) unregistered(limiter string, err error) {
	e.fleets.Do(func() {
		e.logger.Warn("hybrid: Redis refuses to register this server; its limiter does not know its fleet", "limiter", limiter, "cause", cause.Value{Err: err})
	})
}

func (e *events) run() {
	for {
		select {
		case <-e.done: // before what is queued: a slow hook would be told of it long after
			return
		default:
		}
		select {
		case ev := <-e.queue:
			if ev.Down {
				ev.Cause = cause.Of(ev.Err)
			}
			e.tell(ev)
		case <-e.done:
		}
	}
}

func (e *events) tell(ev StoreEvent) {
	defer func() {
		if p := recover(); p != nil {
			e.panics.Do(func() { e.logger.Error("hybrid: a hook panicked", "type", typeOf(p)) })
		}
	}()
	e.hooks.Store(ev)
}

// typeOf says what user code panicked with: the value may hold a key.
func typeOf(p any) string { return fmt.Sprintf("%T", p) }

// stop ends the goroutines after the event and the lines they are at. A hook
// that never returns is left behind.
func (e *events) stop() {
	close(e.done)
	e.log.Stop()
}

// IsBackground reports whether ctx is that of a call to Redis that belongs to no request: a
// node sends what many callers ask for in shared calls, and some on its own. A hook of the
// Redis client that traces finds no parent there, so a sampler can leave these calls out:
// docs/operations.md, "Tracing".
func IsBackground(ctx context.Context) bool { return slice.IsBackground(ctx) }
