package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/survey"
)

// scalingFlags are the choices of runScaling.
type scalingFlags struct {
	only                 string
	missing, quick, docs bool
	seed                 uint64
}

func (f *scalingFlags) bind(fs *flag.FlagSet) {
	fs.StringVar(&f.only, "only", "", "measure only points whose names match this `pattern`, for example ^nodes; keep the others as they are")
	fs.BoolVar(&f.missing, "missing", false, "measure only points that the file lacks")
	fs.BoolVar(&f.quick, "quick", false, "small samples and short spans: print the table, and keep nothing")
	fs.BoolVar(&f.docs, "docs", false, "measure only what the file lacks, and write the section of "+report.ScalingDocument)
	fs.Uint64Var(&f.seed, "seed", 1, "`seed` of everything random")
}

// runScaling measures how cost grows and keeps each point in a file as soon as it
// is there, so that a run that was broken off can go on; or writes the section of
// the documentation from that file. It is run from the repository's root.
func runScaling(t *testing.T, args []string) error {
	var f scalingFlags
	flags := newFlags("scaling")
	f.bind(flags)
	profile := profiled(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	g, plan, err := f.planned()
	if err != nil {
		return err
	}
	stop, err := profile()
	if err != nil {
		return err
	}
	err = g.measure(t, plan)
	stop()
	switch {
	case err != nil:
		return err
	case f.docs:
		return g.write()
	}
	fmt.Print(g.points.Table())
	return nil
}

// planned is what is there, and what is to be measured.
func (f *scalingFlags) planned() (g *growing, plan []survey.Growth, err error) {
	if f.quick && (f.docs || f.missing) {
		return nil, nil, errors.New("quick: it keeps nothing, so there is nothing for -docs or -missing")
	}
	pattern, err := regexp.Compile(f.only)
	if err != nil {
		return nil, nil, err
	}
	g = &growing{quick: f.quick}
	if !f.quick {
		if g.points, err = report.ReadScaling(report.ScalingNumbers); err != nil {
			return nil, nil, err
		}
	}
	plan, err = g.plan(f.seed, pattern, f.missing || f.docs)
	return g, plan, err
}

// growing is points, as far as they are measured.
type growing struct {
	quick  bool
	mu     sync.Mutex
	points report.Scaling
}

// plan is what is to be measured. None is an error, unless nothing is missing.
func (g *growing) plan(seed uint64, pattern *regexp.Regexp, missing bool) (plan []survey.Growth, err error) {
	matched := false
	for _, p := range survey.Scaling(seed) {
		if !pattern.MatchString(p.Name) {
			continue
		}
		matched = true
		if old, ok := g.points.Find(p.Name); missing && ok && old.Command == p.Command {
			continue
		}
		if g.quick {
			quick, ok := p.Quick()
			if !ok {
				continue
			}
			p = quick
		}
		plan = append(plan, p)
	}
	if !matched {
		return nil, fmt.Errorf("only: no point matches %q", pattern)
	}
	return plan, nil
}

// measure runs what is planned, on all processors.
func (g *growing) measure(t *testing.T, plan []survey.Growth) error {
	made := fmt.Sprintf("%s, %s, %s/%s", time.Now().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	errs := make([]error, len(plan))
	atOnce(len(plan), func(i int) {
		p, err := plan[i].Measure(t)
		if err != nil {
			errs[i] = err
			return
		}
		p.Made = made
		errs[i] = g.keep(p)
	})
	return errors.Join(errs...)
}

// keep takes a point into the file, in the order of the plan. It reads the file
// again: another run may have kept points meanwhile.
func (g *growing) keep(p report.Point) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.quick {
		g.put(p)
		return nil
	}
	if g.points, err = report.ReadScaling(report.ScalingNumbers); err != nil {
		return err
	}
	g.put(p)
	file, err := g.points.JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(report.ScalingNumbers, file, 0o644)
}

// put brings the points into the order of the plan, and drops what is not in it. The
// caller holds mu.
func (g *growing) put(p report.Point) {
	g.points = g.points.Put(p)
	var sorted report.Scaling
	for _, p := range survey.Scaling(1) {
		if old, ok := g.points.Find(p.Name); ok {
			sorted = append(sorted, old)
		}
	}
	g.points = sorted
}

// write writes the section and its pictures.
func (g *growing) write() error {
	doc, err := os.ReadFile(report.ScalingDocument)
	if err != nil {
		return fmt.Errorf("scaling: run it from the repository's root: %w", err)
	}
	files, err := g.points.Files(string(doc))
	if err != nil {
		return err
	}
	return writeFiles(files)
}
