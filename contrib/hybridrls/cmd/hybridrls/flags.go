package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// config is what the command line says.
type config struct {
	file    string
	listen  string
	admin   string
	headers bool
	check   bool
	prefix  string
	servers int
	timeout time.Duration
	drain   time.Duration
}

// parseFlags returns an error that names the flag, its value and what is
// allowed. flag.ErrHelp means that help was asked for, and printed.
func parseFlags(args []string, out io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("hybridrls", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller prints errors; help is printed below
	fs.StringVar(&c.file, "config", "", "`file` of rules")
	fs.StringVar(&c.listen, "listen", "127.0.0.1:8081", "`address` for gRPC")
	fs.StringVar(&c.admin, "admin", "", "`address` for operators, over HTTP: GET /debug/hybrid, a page, and GET /metrics; empty: none. It asks nobody who they are")
	fs.BoolVar(&c.headers, "headers", false, "add x-ratelimit headers and retry-after to the gateway's answers")
	fs.BoolVar(&c.check, "check", false, "read the file, say what is wrong with it, and end")
	fs.StringVar(&c.prefix, "prefix", "hybridrls", "`prefix` of all keys in Redis; the same on all servers of a fleet")
	fs.IntVar(&c.servers, "servers", 0, "least `number` of servers in the fleet, for fair shares when Redis is away at the start")
	fs.DurationVar(&c.timeout, "store-timeout", 0, "the longest `time` that a request waits for Redis; below the gateway's own timeout (default 10ms; 1s with the embedded Redis)")
	fs.DurationVar(&c.drain, "drain", 5*time.Second, "`time` for requests under way at the end, and again for what goes back to Redis")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, "usage: hybridrls -config FILE [flags]")
		fs.SetOutput(out)
		fs.PrintDefaults()
		return c, err
	case err != nil:
		return c, err
	case fs.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q: only flags are allowed", fs.Arg(0))
	case c.file == "":
		return c, errors.New("flag -config: missing, allowed a file of rules; example.yaml is one")
	case c.drain < 0 || c.drain > time.Hour:
		return c, fmt.Errorf("flag -drain: %v, allowed 0s to 1h", c.drain)
	}
	return c, nil
}

// storeTimeout is what was asked for, or fits the Redis. The embedded one shares the
// processors with those who ask it, and whoever tries it is not in a hurry.
func (c *config) storeTimeout(redisURL string) time.Duration {
	switch {
	case c.timeout != 0:
		return c.timeout
	case redisURL == "":
		return time.Second
	default:
		return 10 * time.Millisecond
	}
}
