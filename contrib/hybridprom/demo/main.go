// Demo is a fleet to look at: a few nodes under load, each with its /metrics, that
// lose their Redis now and then, first one of them and then all.
//
//	redis-server &
//	go run ./demo
//	prometheus --config.file demo/prometheus.yml
//
// Then import dashboard.json into Grafana, or look at the queries and the alerts in
// Prometheus itself. The traffic is made up: nobody listens but for /metrics.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// config is what the flags say.
type config struct {
	redis  string        // URL
	nodes  int           // how many
	port   int           // of the first node's /metrics; the others' follow. 0: any free ones
	rate   int           // requests per second and node
	every  time.Duration // an outage begins so often
	outage time.Duration // and lasts so long; 0: there is none
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	logging.Disable() // the client's own log of what is cut on purpose
	c, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = run(ctx, c, os.Stdout)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func parse(args []string, out io.Writer) (config, error) {
	c := config{redis: "redis://127.0.0.1:6379"}
	if url := os.Getenv("REDIS_URL"); url != "" {
		c.redis = url
	}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&c.redis, "redis", c.redis, "URL of Redis; the default is that of REDIS_URL, if it is set")
	flags.IntVar(&c.nodes, "nodes", 3, "nodes, 1 to 20")
	flags.IntVar(&c.port, "port", 9101, "port of the first node's /metrics; the other nodes' follow")
	flags.IntVar(&c.rate, "rate", 500, "requests per second and node, 1 to 100000")
	flags.DurationVar(&c.every, "every", 2*time.Minute, "an outage begins so often")
	flags.DurationVar(&c.outage, "outage", 20*time.Second, "and lasts so long; 0: there is none")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	switch {
	case flags.NArg() > 0:
		return c, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case c.nodes < 1 || c.nodes > 20:
		return c, fmt.Errorf("-nodes %d, allowed 1 to 20", c.nodes)
	case c.port < 0 || c.port > 65535-c.nodes:
		return c, fmt.Errorf("-port %d, allowed 0 to %d", c.port, 65535-c.nodes)
	case c.rate < 1 || c.rate > 100_000:
		return c, fmt.Errorf("-rate %d, allowed 1 to 100000", c.rate)
	case c.outage < 0 || c.outage > 0 && c.every <= c.outage:
		return c, fmt.Errorf("-outage %v, allowed 0 to less than -every %v", c.outage, c.every)
	}
	return c, nil
}

// run runs the fleet until ctx ends.
func run(ctx context.Context, c config, out io.Writer) error {
	fleet, err := start(c)
	if err != nil {
		return err
	}
	defer fleet.stop()
	for i, m := range fleet {
		fmt.Fprintf(out, "node %d: http://%s/metrics\n", i+1, m.addr)
	}
	fleet.serve(ctx, c, out)
	return nil
}
