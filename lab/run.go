package main

import (
	"os"
	"testing"

	"github.com/hybridlimit/hybrid/lab/sim"
)

// runOne runs the experiment of the flags.
func runOne(t *testing.T, args []string) error {
	e, err := sim.Parse(args, os.Stderr)
	if err != nil {
		return err
	}
	f := e.Run(t)
	f.Print(os.Stdout)
	return f.Err()
}
