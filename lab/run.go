package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/hybridlimit/hybrid/lab/baseline"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// runOne runs the experiment of the flags.
func runOne(t *testing.T, args []string) error {
	var e sim.Experiment
	var suffix string
	fs := newFlags("run")
	e.Bind(fs)
	fs.Func("subject", "`scheme` that is run instead of the library: exact, static, slices or postpaid:INTERVAL", func(name string) error {
		var k baseline.Kind
		err := k.Set(name)
		e.Subject, suffix = k.Start, " -subject="+name
		return err
	})
	profile := profiled(fs)
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := e.Validate(); err != nil {
		return err
	}
	stop, err := profile()
	if err != nil {
		return err
	}
	f := e.Run(t)
	stop()
	f.Print(os.Stdout)
	fmt.Println("again ", f.Command()+suffix)
	return f.Err()
}

func newFlags(command string) *flag.FlagSet {
	fs := flag.NewFlagSet(command, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error is told once, by exitCode
	return fs
}

// parse reads the flags, or lists them if that is asked for.
func parse(fs *flag.FlagSet, args []string) error {
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Printf("usage: go run ./lab %s [flags]\n", fs.Name())
		fs.SetOutput(os.Stdout)
		fs.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; -h lists the flags", err)
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: only flags are allowed; -h lists the flags", fs.Arg(0))
	}
	return nil
}
