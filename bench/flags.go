package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hybridlimit/hybrid/bench/measure"
)

// parse reads the flags of a command. What is not given is as in Defaults.
func parse(name string, args []string, out io.Writer) (measure.Config, error) {
	c := measure.Defaults()
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(out)
	only := flags.String("only", "", "measure only these `tables`: "+strings.Join(measure.Tables, ","))
	flags.DurationVar(&c.Age, "age", c.Age, "how old nodes must be whose floors are earned")
	flags.DurationVar(&c.Settle, "settle", c.Settle, "how old nodes must be that have floors at all")
	flags.DurationVar(&c.Round, "round", c.Round, "of one contestant in memory, per number of keys and round")
	flags.IntVar(&c.Rounds, "rounds", c.Rounds, "that medians are of")
	flags.DurationVar(&c.Pace, "pace", c.Pace, "of the load that latency is measured under, per delay")
	flags.DurationVar(&c.Warm, "warm", c.Warm, "of the same load before that")
	flags.DurationVar(&c.Flood, "flood", c.Flood, "of one contestant on one hot key, per round")
	flags.DurationVar(&c.Traffic, "traffic", c.Traffic, "of one contestant under a service's traffic")
	flags.IntVar(&c.Rate, "rate", c.Rate, "requests per second of that traffic")
	flags.IntVar(&c.Nodes, "nodes", c.Nodes, "of a fleet")
	flags.DurationVar(&c.Crowd, "crowd", c.Crowd, "of one fleet on one key")
	keys := flags.Int("keys", c.Sizes[len(c.Sizes)-1], "where there are many, a power of two")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("%s: what is %q?", name, flags.Arg(0))
	}
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	for len(c.Sizes) > 1 && c.Sizes[len(c.Sizes)-2] >= *keys {
		c.Sizes = c.Sizes[:len(c.Sizes)-1]
	}
	c.Sizes[len(c.Sizes)-1] = *keys
	return c, nil
}

// progress goes to where no table is.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
