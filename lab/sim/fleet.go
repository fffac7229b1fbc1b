package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// fleet is the subject that the lab is for: nodes of the library, as a program
// would make them, on one store.
type fleet struct {
	e       Experiment
	backend backend
	meter   meter
	watched bool // somebody asks how many tokens nodes hold

	ending  sync.WaitGroup // nodes on their way out
	outages atomic.Int32   // of the store, under way

	nodes atomic.Pointer[[]*member] // ever made; replaced as a whole
	alive atomic.Pointer[[]int]     // numbers of those that are there
	mu    sync.Mutex                // of changes to both, and of problems

	problems map[string]error // by kind; the first of each

	changes changes
}

// member is one node of a fleet.
type member struct {
	node    *hybrid.Node
	limiter *hybrid.Limiter
	usedUp  *hybrid.Limiter // denies; nil: no request asks for several limits
	rdb     *redis.Client
	link    *link
	wire    *wire
	gone    atomic.Bool
	paused  atomic.Bool
}

// newFleet starts the nodes, one after the other within a sync interval: a real
// fleet does not tick in step.
func newFleet(e Experiment, keys *population) *fleet {
	f := &fleet{e: e, backend: newBackend(e.Store), problems: map[string]error{}}
	f.meter.strata, f.meter.keys = make([]strokes, len(keys.strata)), keys
	for _, s := range e.stretches() {
		f.watched = f.watched || s.place == Least
	}
	f.nodes.Store(&[]*member{})
	f.alive.Store(&[]int{})
	rng := e.random("start")
	for range e.Nodes {
		time.Sleep(time.Duration(rng.Int64N(2 * 100e6 / int64(e.Nodes))))
		f.join()
	}
	return f
}

// join makes one more node.
func (f *fleet) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	nodes := *f.nodes.Load()
	number := len(nodes)
	salt := f.e.Seed<<16 + uint64(number)
	m := &member{link: newLink(f.e.Trip, salt, &f.meter), wire: newWire(&f.meter, f.watched, f.e.Fill())}
	m.wire.arrived = f.changes.arrived
	if f.outages.Load() > 0 {
		m.link.cut()
	}
	m.rdb = f.backend.client(m.link, m.wire)
	entropy.during(salt, func() { f.start(m, number) })
	all := append(nodes[:number:number], m)
	f.nodes.Store(&all)
	f.setAlive()
}

// start makes the library's part of a node. It cannot fail: the experiment was
// validated.
func (f *fleet) start(m *member, number int) {
	var err error
	if m.node, err = hybrid.New(m.rdb, &hybrid.Options{
		SyncInterval: f.e.Sync, StoreTimeout: f.e.Timeout, Servers: f.e.Servers, MaxKeys: f.e.MaxKeys,
		NodeID: fmt.Sprintf("n%04d", number),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}); err != nil {
		panic(err)
	}
	if m.limiter, err = m.node.Limiter(limiterName, f.e.Limit, &hybrid.LimiterOptions{
		Accuracy: f.e.Accuracy, OnFailure: f.e.OnFailure,
	}); err != nil {
		panic(err)
	}
	if f.e.Aside.AllOf > 0 {
		if err := f.addUsedUp(m); err != nil {
			panic(err)
		}
	}
}

// setAlive counts who is there. The caller holds mu.
func (f *fleet) setAlive() {
	var alive []int
	for i, m := range *f.nodes.Load() {
		if !m.gone.Load() && !m.paused.Load() {
			alive = append(alive, i)
		}
	}
	f.alive.Store(&alive)
}

func (f *fleet) member(node int) *member { return (*f.nodes.Load())[node] }

func (f *fleet) living() []int { return *f.alive.Load() }

// end ends a node in order; one whose link was cut ends as by a crash, since it
// reaches nobody any more.
func (f *fleet) end(node int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.member(node)
	if m.gone.Swap(true) {
		return
	}
	f.setAlive()
	f.ending.Go(func() { _ = m.node.Close() }) // it may reach nobody
}

// Ask is part of Subject.
func (f *fleet) Ask(node int, key string, cost int64) Answer {
	m := f.member(node)
	f.meter.asked.Add(1)
	asked := time.Now()
	r, err := m.limiter.AllowN(context.Background(), key, cost)
	now := time.Now()
	a := Answer{Allowed: r.Allowed, Blocked: now != asked, At: now.UnixNano() / 1000 * 1000, Policy: r.Path == hybrid.PathFallback, Floor: r.Path == hybrid.PathFloor}
	if a.Blocked {
		f.meter.blocked.Add(1)
	}
	if err != nil {
		if !m.gone.Load() || !errors.Is(err, hybrid.ErrClosed) {
			f.problem("AllowN", err)
		}
		return a
	}
	switch r.Path {
	case hybrid.PathExact:
		f.stamp(&a, m.wire, key)
	case hybrid.PathSlice:
		m.wire.took(key, cost)
	}
	f.check(r)
	return a
}

// refund gives tokens back on a node.
func (f *fleet) refund(m *member, key string, n int64) error {
	if f.e.flaw == refundsTwice {
		_ = m.limiter.Refund(key, n) // as the next one
	}
	return m.limiter.Refund(key, n)
}

// charge charges a node with what turned out to be used.
func (f *fleet) charge(m *member, key string, n int64) error {
	if f.e.flaw == forgetsCharges {
		n = 0
	}
	return m.limiter.Charge(key, n)
}

// stamp gives a decision of the store the time at which the store made it. The
// store knows whole microseconds; a node's own decisions are rounded down to
// them as well, or an interval between the two would look shorter than it was.
func (f *fleet) stamp(a *Answer, w *wire, key string) {
	at, known := w.judged(key)
	switch {
	case known:
		a.At = at
	case a.Allowed:
		f.problem("admission", errors.New("admitted by the store, which knows nothing of it"))
	}
}

// check looks for answers that make no sense.
func (f *fleet) check(r hybrid.Result) {
	if !r.Allowed && r.RetryAfter <= 0 {
		f.problem("RetryAfter", fmt.Errorf("denied with RetryAfter %v", r.RetryAfter))
	}
	if r.Remaining < 0 || r.Remaining > r.Limit {
		f.problem("Remaining", fmt.Errorf("Remaining %d of Limit %d", r.Remaining, r.Limit))
	}
}

// problem keeps the first of each kind.
func (f *fleet) problem(kind string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problems[kind] == nil {
		f.problems[kind] = err
	}
}

// Cost is part of Subject.
func (f *fleet) Cost() Cost { return f.meter.cost() }

// remembered is how many keys the nodes remember, on average. It looks at each that
// is in touch with the store.
func (f *fleet) remembered() float64 {
	sum := 0
	living := f.living()
	for _, node := range living {
		sum += f.member(node).node.Stats().Total.Keys
	}
	return float64(sum) / float64(len(living))
}

// tokens is what a node holds of a key.
func (f *fleet) tokens(node int, key string) int64 { return f.member(node).wire.holds(key) }

// Close is part of Subject.
func (f *fleet) Close() {
	for node := range *f.nodes.Load() {
		f.end(node)
	}
	f.ending.Wait()
	for _, m := range *f.nodes.Load() {
		_ = m.rdb.Close() // the node leaves it to whoever made it
	}
	time.Sleep(2 * time.Second) // a client that could not dial tries each second, until it sees that it is closed
	f.backend.close()
}
