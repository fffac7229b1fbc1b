package measure

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/hybridlimit/hybrid/bench/peer"
)

// Config says how much is measured. Only the defaults give numbers to publish.
type Config struct {
	Only []string // names of tables; empty for all

	Limit peer.Limit    // of every table but the one of decisions in memory
	Age   time.Duration // a node's floors are earned by then: a membership TTL and the time that the limit takes to fill

	// Decisions in memory.
	Sizes  []int         // numbers of keys, growing powers of two; the last is used by all that need many
	Round  time.Duration // of one contestant
	Rounds int
	Settle time.Duration // a node has floors at all by then: a membership TTL

	// Latency on the way to Redis.
	Delays []time.Duration
	Pace   time.Duration // of each delay, measured
	Warm   time.Duration // before that

	Flood   time.Duration // of one contestant in one round, on one hot key
	Traffic time.Duration // of one contestant, over many keys
	Rate    int           // requests per second of that, over all nodes
	Nodes   int           // of fleets
	Crowd   time.Duration // of one contestant, a whole fleet on one key
}

// Defaults take about four minutes on two cores.
func Defaults() Config {
	return Config{
		Limit:   peer.Limit{Count: 1000, Period: time.Minute},
		Age:     66 * time.Second,
		Sizes:   []int{1, 1 << 16, 1 << 20},
		Round:   150 * time.Millisecond,
		Rounds:  3,
		Settle:  6 * time.Second,
		Delays:  []time.Duration{0, time.Millisecond, 5 * time.Millisecond},
		Pace:    4 * time.Second,
		Warm:    2 * time.Second,
		Flood:   700 * time.Millisecond,
		Traffic: 3 * time.Second,
		Rate:    10_000,
		Nodes:   20,
		Crowd:   2 * time.Second,
	}
}

// Tables are the names of all tables, in the order in which they are shown.
var Tables = []string{"memory", "latency", "flood", "traffic", "heap", "fleet"}

func (c *Config) wants(table string) bool { return len(c.Only) == 0 || slices.Contains(c.Only, table) }

func (c *Config) validate() error {
	for _, name := range c.Only {
		if !slices.Contains(Tables, name) {
			return fmt.Errorf("measure: no table %q, allowed %v", name, Tables)
		}
	}
	for _, d := range []time.Duration{c.Round, c.Pace, c.Flood, c.Traffic, c.Crowd} {
		if d <= 0 {
			return fmt.Errorf("measure: duration %v, allowed above 0", d)
		}
	}
	if c.Rounds < 1 || c.Rate < 1 || c.Nodes < 1 || len(c.Sizes) == 0 || len(c.Delays) == 0 {
		return fmt.Errorf("measure: %d rounds, %d requests per second, %d nodes, %d sizes, %d delays: allowed from 1", c.Rounds, c.Rate, c.Nodes, len(c.Sizes), len(c.Delays))
	}
	before := 0
	for _, n := range c.Sizes {
		if bits.OnesCount(uint(n)) != 1 || n <= before {
			return fmt.Errorf("measure: sizes %v, allowed growing powers of two", c.Sizes)
		}
		before = n
	}
	return nil
}

// keys is how many there are where there are many.
func (c *Config) keys() int { return c.Sizes[len(c.Sizes)-1] }
