package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
)

// config is what one run does. It travels to the nodes as it is.
type config struct {
	Nodes    int
	Rate     int // requests per second, on all nodes together
	Keys     int
	Zipf     float64
	Limit    quota
	Seconds  float64
	Warmup   time.Duration
	Timeout  time.Duration // Options.StoreTimeout
	Accuracy dial
	Precheck bool
	Procs    bool
	Seed     uint64
}

// mostRequests bounds the memory of a run: each request is kept for the replay.
const mostRequests = 50_000_000

// parseFlags returns an error that names the flag, its value and what is
// allowed. flag.ErrHelp means that help was asked for, and printed.
func parseFlags(args []string, out io.Writer) (config, error) {
	c := config{
		Nodes: 20, Rate: 50_000, Keys: 1_000_000, Zipf: 0.99, Seconds: 30,
		Limit: quota{1000, time.Minute}, Warmup: -1, Timeout: 20 * time.Millisecond, Precheck: true,
	}
	fs := flag.NewFlagSet("fleet", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller prints errors; help is printed below
	fs.Var(between(&c.Nodes, strconv.Atoi, 1, 1000), "nodes", "`number` of servers that share the limit")
	fs.Var(between(&c.Rate, strconv.Atoi, 1, 10_000_000), "rate", "`requests` per second, on all nodes together")
	fs.Var(between(&c.Keys, strconv.Atoi, 1, 100_000_000), "keys", "`number` of different keys")
	fs.Var(between(&c.Zipf, parseFloat, 0, 5), "zipf", "`exponent` of the popularity of keys; 0 = all alike")
	fs.Var(&c.Limit, "limit", "limit of each key, `COUNT/PERIOD`, a token bucket")
	fs.Var(between(&c.Seconds, parseFloat, 0.1, 3600), "seconds", "`length` of the measured part")
	fs.Func("warmup", "idle `time` before it (default 6s and, where floors must be earned, a period of the limit)",
		between(&c.Warmup, time.ParseDuration, 0, time.Hour).Set)
	fs.Var(between(&c.Timeout, time.ParseDuration, time.Millisecond, 10*time.Second), "timeout", "Options.StoreTimeout, the `time` that a call waits for Redis")
	fs.Var(&c.Accuracy, "accuracy", "`dial`: balanced, strict, exact or within(over,under)")
	fs.Var((*onOff)(&c.Precheck), "precheck", "`off` = every request asks Redis, as with -accuracy exact")
	fs.BoolVar(&c.Procs, "procs", false, "each node is an operating-system process of its own")
	fs.Uint64Var(&c.Seed, "seed", 0, "`seed` of the traffic; 0 = another one each time")

	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, "usage: fleet [flags]")
		fs.SetOutput(out)
		fs.PrintDefaults()
		return c, err
	case err != nil:
		return c, err
	case fs.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q: only flags are allowed", fs.Arg(0))
	}
	if n := float64(c.Rate) * c.Seconds; n > mostRequests {
		return c, fmt.Errorf("flags -rate %d and -seconds %v: %.0f requests, allowed %d", c.Rate, c.Seconds, n, mostRequests)
	}
	if !c.Precheck {
		c.Accuracy = dial(hybrid.Exact)
	}
	if c.Warmup < 0 {
		c.Warmup = 6 * time.Second // a membership TTL: by then the nodes know each other
		if c.floors() {
			c.Warmup += min(c.Limit.Period, 2*time.Minute)
		}
	}
	return c, nil
}

// floors reports whether nodes have floors, which are earned over a period.
func (c config) floors() bool {
	return c.Accuracy != dial(hybrid.Strict) && c.Accuracy != dial(hybrid.Exact)
}

// ranged is a flag whose value lies between two others.
type ranged[T cmp.Ordered] struct {
	to          *T
	parse       func(string) (T, error)
	least, most T
}

func between[T cmp.Ordered](to *T, parse func(string) (T, error), least, most T) *ranged[T] {
	return &ranged[T]{to, parse, least, most}
}

func (r *ranged[T]) Set(s string) error {
	v, err := r.parse(s)
	if err != nil || !(v >= r.least && v <= r.most) { // NaN is in no range
		return fmt.Errorf("allowed %v to %v", r.least, r.most)
	}
	*r.to = v
	return nil
}

func (r *ranged[T]) String() string {
	if r.to == nil {
		return ""
	}
	return fmt.Sprint(*r.to)
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// quota is a count per period.
type quota struct {
	Count  int64
	Period time.Duration
}

func (q quota) limit() hybrid.Limit { return hybrid.Per(q.Count, q.Period) }

var periods = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour,
}

const (
	mostCount  = 1 << 53
	mostPeriod = 366 * 24 * time.Hour
)

// Set reads "1000/min" or "50/10s".
func (q *quota) Set(s string) error {
	wrong := fmt.Errorf("allowed COUNT/PERIOD, COUNT 1 to %d, PERIOD s, min, h, d or a duration from 1ms to %v", int64(mostCount), mostPeriod)
	count, name, _ := strings.Cut(s, "/")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 || n > mostCount {
		return wrong
	}
	period, known := periods[name]
	if !known {
		if period, err = time.ParseDuration(name); err != nil || period < time.Millisecond || period > mostPeriod {
			return wrong
		}
	}
	*q = quota{n, period}
	return nil
}

func (q *quota) String() string {
	for _, name := range []string{"s", "min", "h", "d"} {
		if periods[name] == q.Period {
			return fmt.Sprintf("%d/%s", q.Count, name)
		}
	}
	return fmt.Sprintf("%d/%v", q.Count, q.Period)
}

// dial is an accuracy as a flag.
type dial hybrid.Accuracy

var within = regexp.MustCompile(`^within\(([^,]+),([^,]+)\)$`)

func (d *dial) Set(s string) error {
	switch s {
	case "balanced":
		*d = dial(hybrid.Balanced)
		return nil
	case "strict":
		*d = dial(hybrid.Strict)
		return nil
	case "exact":
		*d = dial(hybrid.Exact)
		return nil
	}
	if m := within.FindStringSubmatch(strings.ReplaceAll(s, " ", "")); m != nil {
		var over, under float64
		if between(&over, parseFloat, 0, 1).Set(m[1]) == nil && between(&under, parseFloat, 0, 1).Set(m[2]) == nil {
			*d = dial(hybrid.Within(over, under))
			return nil
		}
	}
	return errors.New("allowed balanced, strict, exact, or within(over,under) with both from 0 to 1")
}

func (d *dial) String() string { return strings.ToLower(hybrid.Accuracy(*d).String()) }

// MarshalBinary and UnmarshalBinary take an accuracy to the processes of the fleet.
func (d dial) MarshalBinary() ([]byte, error) { return []byte(d.String()), nil }

func (d *dial) UnmarshalBinary(text []byte) error { return d.Set(string(text)) }

// onOff is a switch that is written out.
type onOff bool

func (o *onOff) Set(s string) error {
	if s != "on" && s != "off" {
		return errors.New("allowed on or off")
	}
	*o = s == "on"
	return nil
}

func (o *onOff) String() string {
	if *o {
		return "on"
	}
	return "off"
}
