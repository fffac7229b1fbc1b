// Command tiers shows plans that change while they are in use: a customer is
// upgraded, and plans get other numbers, under load and without a restart. A coarse limit
// per address stands in front of the precise one per customer.
//
// It needs nothing installed: the Redis in it is embedded, unless REDIS_URL
// names another.
package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/examples/internal/demo"
)

func main() {
	if _, err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tiers:", err)
		os.Exit(1)
	}
}

// story is what happened.
type story struct {
	rows []row
	scan scan
}

// row is one customer in one act.
type row struct {
	act      string
	customer string
	limit    hybrid.Limit
	offered  int
	served   int
	took     time.Duration
}

func run(out io.Writer) (*story, error) {
	node, stop, err := demo.OpenNode("tiers")
	if err != nil {
		return nil, err
	}
	defer stop()
	plans := newPlans(map[string]hybrid.Limit{"pro": pro, "enterprise": enterprise})
	plans.move("carol", "enterprise")
	gate, err := newGate(node, plans)
	if err != nil {
		return nil, err
	}
	s := &story{}
	if err := s.play(gate, plans); err != nil {
		return nil, err
	}
	return s, s.tell(out)
}

// play lets the same customers send the same load all the time, and changes plans
// in between. A change counts for the next request that no slice serves.
func (s *story) play(g *gate, p *plans) error {
	for _, act := range []struct {
		name   string
		change func() error
	}{
		{"as it was", func() error { return nil }},
		{"ann upgrades to pro", func() error { p.move("ann", "pro"); return nil }},
		{"pro and free get more", func() error {
			p.change("pro", hybrid.PerSecond(200))
			return g.handler.SetLimit(hybrid.PerSecond(20)) // the limiter's own: of all who have no plan
		}},
	} {
		if err := act.change(); err != nil {
			return err
		}
		rows, err := load(g, "ann", "bob", "carol")
		if err != nil {
			return err
		}
		for _, r := range rows {
			r.act = act.name
			s.rows = append(s.rows, r)
		}
	}
	var err error
	s.scan, err = scanNames(g)
	return err
}

func (s *story) tell(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "act\tcustomer\tlimit\toffered\tserved")
	act := ""
	for _, r := range s.rows {
		name := r.act
		if name == act {
			name = ""
		}
		act = r.act
		fmt.Fprintf(w, "%s\t%s\t%v\t%d\t%d\n", name, r.customer, r.limit, r.offered, r.served)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\none address tries %d customers' names: %d requests are denied at the edge, which knows\n"+
		"nobody's plan; the other %d are all that the handler has to look up\n", scans, s.scan.atEdge, scans-s.scan.atEdge)
	return nil
}
