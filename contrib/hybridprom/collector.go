package hybridprom

import (
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hybridlimit/hybrid"
)

// New makes a collector of a node's metrics, to be registered once:
//
//	collector, err := hybridprom.New(node, nil)
//	...
//	prometheus.MustRegister(collector)
//
// Options are copied; nil means all defaults. Nothing is done until a scrape, and
// there is nothing to close: a collector of a node that is closed shows what the
// node has last counted.
//
// It fails with hybrid.ErrInvalidOption.
func New(node *hybrid.Node, opts *Options) (prometheus.Collector, error) {
	full, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if node == nil {
		return nil, invalid("node", "nil", "a node")
	}
	c := &collector{node: node, minInterval: full.MinInterval}
	for _, m := range metrics {
		c.descs = append(c.descs, full.desc(m.name, m.help, m.labels))
	}
	for _, h := range histograms {
		c.histograms = append(c.histograms, full.desc(h.name, h.help, nil))
	}
	return c, nil
}

func (o *Options) desc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "", name), help, labels, o.ConstLabels)
}

// collector turns what a node has counted into metrics, when it is asked to.
type collector struct {
	node        *hybrid.Node
	minInterval time.Duration
	descs       []*prometheus.Desc // of metrics, in their order
	histograms  []*prometheus.Desc // of histograms, in theirs

	mu    sync.Mutex
	last  *snapshot
	taken time.Time // when last was
}

// snapshot is one look at a node. It is not changed once it is made.
type snapshot struct {
	stats    hybrid.Stats
	limiters map[string]hybrid.LimiterStats // by label
	open     []*hybrid.Limiter
}

// Describe sends what can be collected, which does not depend on the node's
// limiters: two collectors with the same names and labels cannot be registered.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
	for _, d := range c.histograms {
		ch <- d
	}
}

// Collect sends the metrics of the last look, or of a new one if that was long ago.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.look()
	for i, m := range metrics {
		m.read(s, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(c.descs[i], m.kind, value, labels...)
		})
	}
	for i, h := range histograms {
		ch <- constHistogram(c.histograms[i], h.read(&s.stats))
	}
}

// look returns numbers that are at most minInterval old. Scrapes that come at the
// same time share one look, and the later ones wait for it.
func (c *collector) look() *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || time.Since(c.taken) >= c.minInterval {
		c.last = snapshotOf(c.node)
		c.taken = time.Now() // after the walk: they cannot follow each other without a pause
	}
	return c.last
}

func snapshotOf(node *hybrid.Node) *snapshot {
	s := &snapshot{stats: node.Stats(), open: node.Limiters()}
	s.limiters = make(map[string]hybrid.LimiterStats, len(s.stats.Limiters))
	for name, l := range s.stats.Limiters {
		s.limiters[labelOf(name)] = l
	}
	return s
}

// labelOf is a text as the value of a label, which must be UTF-8: otherwise
// nothing of the whole registry could be scraped. What is not is quoted, as Go
// does it; and so is what looks as if it were, so that no two texts get one value.
func labelOf(text string) string {
	if utf8.ValidString(text) && !strings.HasPrefix(text, `"`) {
		return text
	}
	return strconv.Quote(text)
}

// constHistogram translates counts between bounds into counts up to bounds.
func constHistogram(desc *prometheus.Desc, h hybrid.Histogram) prometheus.Metric {
	upTo := make(map[float64]uint64, len(h.Bounds))
	var count uint64
	for i, n := range h.Counts {
		count += n
		if i < len(h.Bounds) {
			upTo[h.Bounds[i]] = count
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, h.Sum, upTo)
}
