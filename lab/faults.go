package main

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/hybridlimit/hybrid/lab/sim"
)

const mostSeeds = 10_000_000

// runFaults runs random fleets in which everything goes wrong.
func runFaults(t *testing.T, args []string) error {
	fs := newFlags("faults")
	seeds := fs.Int("seeds", 100, "`number` of fleets")
	from := fs.Uint64("from", 0, "the first `seed`")
	verbose := fs.Bool("v", false, "tell of each what it was and what it cost")
	var store sim.Store
	fs.Var(&store, "store", "`memory` or mini")
	profile := profiled(fs)
	if err := parse(fs, args); err != nil {
		return err
	}
	if *seeds < 1 || *seeds > mostSeeds {
		return fmt.Errorf("seeds: %d, allowed 1 to %d", *seeds, mostSeeds)
	}
	stop, err := profile()
	if err != nil {
		return err
	}
	var (
		mu       sync.Mutex
		all      []error
		requests int64
	)
	atOnce(*seeds, func(i int) {
		e := sim.Mix(*from + uint64(i))
		e.Store = store
		f := e.Run(t)
		mu.Lock()
		defer mu.Unlock()
		requests += f.Asked
		if *verbose {
			fmt.Printf("seed %d: %s\n", e.Seed, f.Brief())
		}
		if err := f.Err(); err != nil {
			again := fmt.Sprintf("go run ./lab faults -seeds=1 -from=%d -store=%v", e.Seed, &store)
			all = append(all, fmt.Errorf("seed %d: %w\nagain: %s\nor:    %s", e.Seed, err, again, f.Command()))
		}
	})
	stop()
	fmt.Printf("seeds %d to %d: %d requests, %d fleets broke a promise\n", *from, *from+uint64(*seeds)-1, requests, len(all))
	return errors.Join(all...)
}
