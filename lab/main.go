// Command lab measures how accurate the library is and what it costs: it runs the
// real code in virtual time, under any load, and judges every decision against a
// perfect central limiter.
//
//	go run ./lab run -limit 1000/min -load 1.4        one experiment; -h lists its flags
//	go run ./lab table                                the rows that must reach their targets
//	go run ./lab service                              50,000 requests per second over a million keys
//	go run ./lab faults -seeds 100                    random fleets in which everything goes wrong
//	go run ./lab docs                                 the tables and pictures of docs/accuracy.md, in minutes
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
)

// commands are what the first argument may be. They run inside of a test, since
// virtual time is to be had nowhere else.
var commands = map[string]func(t *testing.T, args []string) error{
	"docs":    runDocs,
	"run":     runOne,
	"table":   runTable,
	"service": runService,
	"faults":  runFaults,
}

func main() {
	args := os.Args[1:]
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprintf(os.Stderr, "usage: go run ./lab COMMAND [flags], COMMAND one of %s; COMMAND -h lists its flags\n", names())
		os.Exit(2)
	}
	os.Exit(inTest(func(t *testing.T) error { return commands[args[0]](t, args[1:]) }))
}

func names() string {
	var all []string
	for name := range commands {
		all = append(all, name)
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
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
