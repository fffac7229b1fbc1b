package hybridotel

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/hybridlimit/hybrid"
)

// fresh is how long Stats are shown again: a reading looks at every key that is in
// touch with Redis, and there may be many readers.
const fresh = time.Second

// collector reads a node's Stats for the readers of a MeterProvider.
type collector struct {
	// Immutable.
	node     *hybrid.Node
	common   []attribute.KeyValue // of every data point
	perNode  *points[nodeStats]
	limiters *family[limiterStats]
	failures metric.Int64Observable

	mu      sync.Mutex // of two collections one waits: what is recorded must be recorded once
	at      time.Time  // when stats were read; zero before the first collection
	stats   hybrid.Stats
	times   *replay
	batches *replay
	byName  map[string]*points[limiterStats]
	byCause map[string][]metric.ObserveOption
}

func newCollector(node *hybrid.Node, m *maker, common []attribute.KeyValue) *collector {
	first := node.Stats()
	with := withAttributes(common)
	return &collector{
		node:     node,
		common:   common,
		perNode:  newPoints(newFamily(m, nodeWholes, nodeParts), common),
		limiters: newFamily(m, limiterWholes, limiterParts),
		failures: m.whole(counter, "operation.failures", "{operation}",
			"Operations that Redis did not execute, or may not have, by cause: those of failed_operations, of all limiters."),
		times: newReplay(m.histogram("store.call.duration", "s",
			"How long calls to Redis took, until the answer or until they were given up.", first.CallTime.Bounds), with, first.CallTime),
		batches: newReplay(m.histogram("store.call.operations", "{operation}",
			"How many operations a call to Redis carried.", first.BatchSize.Bounds), with, first.BatchSize),
		byName:  make(map[string]*points[limiterStats]),
		byCause: make(map[string][]metric.ObserveOption),
	}
}

// collect is the callback: called for each collection of each reader.
func (c *collector) collect(ctx context.Context, o metric.Observer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.at.IsZero() || now.Sub(c.at) >= fresh {
		c.at = now
		c.read(ctx)
	}
	c.perNode.observe(o, &c.stats)
	for name, s := range c.stats.Limiters {
		c.byName[name].observe(o, &s)
	}
	for cause, n := range c.stats.Failures {
		o.ObserveInt64(c.failures, int64(n), c.byCause[cause]...)
	}
	return nil
}

// read takes new Stats, tells the histograms what has come, and knows the
// attributes of all that is in them.
func (c *collector) read(ctx context.Context) {
	c.stats = c.node.Stats()
	c.times.tell(ctx, c.stats.CallTime)
	c.batches.tell(ctx, c.stats.BatchSize)
	for name := range c.stats.Limiters {
		if c.byName[name] == nil {
			c.byName[name] = newPoints(c.limiters, append(c.common[:len(c.common):len(c.common)], limiterAttribute(name)))
		}
	}
	maps.DeleteFunc(c.byName, func(name string, _ *points[limiterStats]) bool {
		_, open := c.stats.Limiters[name]
		return !open
	})
	for cause := range c.stats.Failures {
		if c.byCause[cause] == nil {
			c.byCause[cause] = []metric.ObserveOption{withAttributes(c.common, keyCause.String(cause))}
		}
	}
}
