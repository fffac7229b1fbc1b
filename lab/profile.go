package main

import (
	"flag"
	"os"
	"runtime/pprof"
)

// profiled adds a flag that writes a CPU profile, and returns what starts it;
// what that returns ends it.
func profiled(fs *flag.FlagSet) (start func() (stop func(), err error)) {
	path := fs.String("cpuprofile", "", "`file` for a CPU profile of the run")
	return func() (func(), error) {
		if *path == "" {
			return func() {}, nil
		}
		f, err := os.Create(*path)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		return func() {
			pprof.StopCPUProfile()
			_ = f.Close()
		}, nil
	}
}
