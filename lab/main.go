// Command lab measures how accurate the library is and what it costs: it runs the
// real code in virtual time, under any load, and judges every decision against a
// perfect central limiter.
//
//	go run ./lab run -limit 1000/min -load 1.4        one experiment; -h lists its flags
//	go run ./lab table                                the rows that must reach their targets
//	go run ./lab service                              50,000 requests per second over a million keys
//	go run ./lab faults -seeds 100                    random fleets in which everything goes wrong
//	go run ./lab scaling                              how cost grows, measured and by a formula; -docs writes it
//	go run ./lab docs                                 the tables and pictures of docs/accuracy.md, in minutes
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// command is what the first argument may be. It runs inside of a test, since
// virtual time is to be had nowhere else.
type command struct {
	name, what string
	run        func(t *testing.T, args []string) error
}

var commands = []command{
	{"run", "one experiment", runOne},
	{"table", "the rows that must reach their targets", runTable},
	{"brief", "limits that fill in milliseconds", runBrief},
	{"service", "whole services: up to a million requests per second", runService},
	{"ablate", "what the table comes to without each mechanism of the protocol, in ten minutes", runAblate},
	{"faults", "random fleets in which everything goes wrong", runFaults},
	{"scaling", "how cost grows with keys, nodes, requests and limits, beside a formula", runScaling},
	{"docs", "the tables and pictures of docs/accuracy.md, in minutes", runDocs},
}

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage())
		os.Exit(2)
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Print(usage())
		return
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		fmt.Fprintf(os.Stderr, "lab: no command %q; -h lists them\n", args[0])
		os.Exit(2)
	}
	os.Exit(inTest(func(t *testing.T) error { return commands[i].run(t, args[1:]) }))
}

func usage() string {
	var b strings.Builder
	b.WriteString("usage: go run ./lab COMMAND [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-8s %s\n", c.name, c.what)
	}
	b.WriteString("\nCOMMAND -h lists its flags.\n")
	return b.String()
}

// inTest calls a function as a test, and returns the exit code.
func inTest(f func(t *testing.T) error) int {
	os.Args = os.Args[:1] // package testing would read flags of its own
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "lab", F: func(t *testing.T) {
		os.Exit(exitCode(f(t)))
	}}}, nil, nil)
	return 1 // not reached
}

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	}
	fmt.Fprintln(os.Stderr, "lab:", err)
	return 1
}
