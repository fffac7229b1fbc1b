package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
)

// node is one server of the fleet: its own client, a limiter per policy, and
// what it logged and told its hooks.
type node struct {
	*hybrid.Node
	rdb      redis.UniversalClient
	limiters []*hybrid.Limiter // by policies
	log      *logBook
	began    time.Time

	mu     sync.Mutex
	events []event
}

// event is a call of Hooks.Store.
type event struct {
	node int
	at   time.Duration // since the run began
	down bool
	err  error
}

// fleet is a few nodes in one process.
type fleet struct {
	nodes []*node
}

// fleetSetup says what fleet to start.
type fleetSetup struct {
	nodes    int
	limit    hybrid.Limit
	accuracy hybrid.Accuracy
	options  hybrid.Options
	began    time.Time                            // of the run
	connect  func(node int) redis.UniversalClient // closed when the test ends
}

// usualFleet has default options, but for the fleet's size.
func usualFleet(began time.Time, connect func(int) redis.UniversalClient) fleetSetup {
	return fleetSetup{nodes: 4, limit: hybrid.PerSecond(100), accuracy: hybrid.Strict,
		options: hybrid.Options{Servers: 4}, began: began, connect: connect}
}

// Defaults of hybrid.Options.
const (
	defaultTimeout = 20 * time.Millisecond
	defaultTick    = 100 * time.Millisecond
)

// start makes the nodes, which are closed when the test ends.
func (s fleetSetup) start(t testing.TB) *fleet {
	t.Helper()
	f := &fleet{}
	t.Cleanup(f.close)
	for i := range s.nodes {
		f.nodes = append(f.nodes, s.startNode(t, i))
	}
	return f
}

// close ends all nodes at once: without a store each takes a second.
func (f *fleet) close() {
	var wg sync.WaitGroup
	for _, n := range f.nodes {
		wg.Go(func() {
			_ = n.Node.Close() // the store may be in any state
			_ = n.rdb.Close()
		})
	}
	wg.Wait()
}

func (s fleetSetup) startNode(t testing.TB, i int) *node {
	t.Helper()
	n := &node{rdb: s.connect(i), log: &logBook{began: s.began}, began: s.began}
	opts := s.options
	opts.NodeID = fmt.Sprintf("node%d", i)
	opts.Logger = slog.New(slog.NewTextHandler(n.log, nil))
	opts.Hooks.Store = func(e hybrid.StoreEvent) { n.hear(i, e) }
	var err error
	if n.Node, err = hybrid.New(n.rdb, &opts); err != nil {
		t.Fatal(err)
	}
	for _, p := range policies {
		l, err := n.Limiter(p.String(), s.limit, &hybrid.LimiterOptions{Accuracy: s.accuracy, OnFailure: p})
		if err != nil {
			t.Fatal(err)
		}
		n.limiters = append(n.limiters, l)
	}
	return n
}

func (n *node) hear(i int, e hybrid.StoreEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, event{i, e.At.Sub(n.began), e.Down, e.Err})
}

// heard returns what all nodes told their hooks, in order of time per node.
func (f *fleet) heard() (events []event) {
	for _, n := range f.nodes {
		n.mu.Lock()
		events = append(events, n.events...)
		n.mu.Unlock()
	}
	return events
}

// down reports whether any node has told its hooks of an outage that is not over.
// The statistics say it as well, but look at every key for it.
func (f *fleet) down() (any bool) {
	for _, n := range f.nodes {
		n.mu.Lock()
		any = any || len(n.events) > 0 && n.events[len(n.events)-1].down
		n.mu.Unlock()
	}
	return any
}

// awaitUp waits until no node holds the store for down. Hooks are told by another
// goroutine, so they are asked once more after a while.
func (f *fleet) awaitUp() {
	awaitUp(f.down)
	time.Sleep(50 * time.Millisecond)
	awaitUp(f.down)
}

// awaitUp waits until nothing is down, for 8 s at most.
func awaitUp(down func() bool) {
	_ = until(8*time.Second, func() error {
		if down() {
			return errors.New("down")
		}
		return nil
	})
}

// connections returns how many connections the clients have, with those for pipelines.
func (f *fleet) connections() (total int) {
	for _, n := range f.nodes {
		s := n.rdb.PoolStats()
		total += int(s.TotalConns + s.PipelineStats.TotalConns)
	}
	return total
}

// logLine is one line of a node's log.
type logLine struct {
	node int
	at   time.Duration
	text string
}

func (l logLine) is(level slog.Level) bool { return strings.Contains(l.text, "level="+level.String()) }

// logBook keeps what a node logs.
type logBook struct {
	began time.Time

	mu    sync.Mutex
	lines []logLine
}

func (b *logBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, logLine{at: time.Since(b.began), text: string(bytes.TrimSpace(line))})
	return len(line), nil
}

// logged returns what all nodes have logged.
func (f *fleet) logged() (lines []logLine) {
	for i, n := range f.nodes {
		n.log.mu.Lock()
		for _, l := range n.log.lines {
			l.node = i
			lines = append(lines, l)
		}
		n.log.mu.Unlock()
	}
	return lines
}

// stats returns what each node says of itself.
func (f *fleet) stats() (all []hybrid.Stats) {
	for _, n := range f.nodes {
		all = append(all, n.Stats())
	}
	return all
}
