package store

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/hybridlimit/hybrid/exact"
)

// Settings are how much is measured.
type Settings struct {
	Rounds int // in which everything has its turn
	Sample int // accounts settled in a turn
	Memory int // accounts stored to measure their memory
	Calls  int // of which the longest is looked for
}

// way is how accounts are sent.
type way struct {
	head  string
	size  int  // of a batch
	alone bool // one account a call
}

var ways = []way{
	{"1 a call", 1, false},
	{"64 a call", 64, false},
	{"512, 64 a call", 512, false},
	{"64, 1 a call, in a pipeline", 64, true},
}

// subject is a script behind stores that send it either way.
type subject struct {
	name            string
	together, alone *exact.Store
	stub            bool // settles nothing
}

// cost is what one account takes, in µs.
type cost struct{ script, cpu float64 }

// cell is one number of the tables to be: a subject settles a kind in a way.
type cell struct {
	subject *subject
	kind    kind
	way     way
	batch   *batch
	owner   string
	script  []float64 // µs per account, by round
	cpu     []float64
}

// bench is a measurement under way.
type bench struct {
	Settings
	server *server
	source string // of the settle script
	cells  []*cell
	owners int // of accounts, so far
}

// add plans cells for a subject, one for each kind and way.
func (b *bench) add(s *subject, ks []kind, ws []way) {
	for _, k := range ks {
		for _, w := range ws {
			b.cells = append(b.cells, &cell{subject: s, kind: k, way: w})
		}
	}
}

// subject makes a subject of a source; "" is the settle script as it is sent.
func (b *bench) subject(ctx context.Context, name, source string, stub bool) (*subject, error) {
	hooks := []hook{}
	if source != "" {
		sha, err := b.server.rdb.ScriptLoad(ctx, source).Result()
		if err != nil {
			return nil, fmt.Errorf("store: %s: %w", name, err)
		}
		hooks = append(hooks, insteadOf(sha))
	}
	s := &subject{name: name, stub: stub}
	var err error
	if s.together, err = b.server.store(asHooks(hooks)...); err != nil {
		return nil, err
	}
	s.alone, err = b.server.store(asHooks(append(hooks, apart))...)
	return s, err
}

// run gives every cell its turn, in each round.
func (b *bench) run(ctx context.Context, out io.Writer) error {
	for _, c := range b.cells {
		if err := b.prepare(ctx, c); err != nil {
			return err
		}
	}
	for round := range b.Rounds {
		fmt.Fprintf(out, "round %d of %d\n", round+1, b.Rounds)
		for i := range b.cells {
			if err := b.turn(ctx, b.cells[(i+round)%len(b.cells)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare makes a cell's accounts, and settles them for the first time.
func (b *bench) prepare(ctx context.Context, c *cell) error {
	b.owners++
	c.owner = fmt.Sprint("c", b.owners)
	c.batch = newBatch(c.kind, c.owner, c.way.size)
	if c.kind.prepare != nil {
		if err := c.kind.prepare(ctx, b.server.rdb, c.batch.accounts()); err != nil {
			return err
		}
	}
	for range 2 {
		c.settle(ctx)
	}
	return c.check()
}

func (c *cell) settle(ctx context.Context) {
	s := c.subject.together
	if c.way.alone {
		s = c.subject.alone
	}
	c.batch.renew(c.owner)
	s.Settle(ctx, c.batch.settles)
}

// check looks whether the script did what is measured.
func (c *cell) check() error {
	if c.subject.stub {
		return nil
	}
	if err := c.batch.check(); err != nil {
		return fmt.Errorf("%s: %w", c.subject.name, err)
	}
	return nil
}

// turn is one sample of a cell.
func (b *bench) turn(ctx context.Context, c *cell) error {
	before, err := b.server.spent(ctx)
	if err != nil {
		return err
	}
	settled := 0
	for settled < b.Sample {
		c.settle(ctx)
		settled += c.way.size
	}
	after, err := b.server.spent(ctx)
	if err != nil {
		return err
	}
	c.script = append(c.script, us(after.scripts-before.scripts)/float64(settled))
	c.cpu = append(c.cpu, us(after.cpu-before.cpu)/float64(settled))
	return c.check()
}

// cost is the least of the rounds: whatever else runs on the machine only adds to it.
func (c *cell) cost() cost { return cost{script: slices.Min(c.script), cpu: slices.Min(c.cpu)} }
