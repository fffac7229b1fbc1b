package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"sync"
	"testing"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/lab/sim"
)

// runTable measures the rows of the table of targets and prints it as Markdown.
func runTable(t *testing.T, args []string) error {
	return runRows(t, "table", sim.Rows(), args)
}

// runBrief does the same with limits that fill in milliseconds.
func runBrief(t *testing.T, args []string) error {
	return runRows(t, "brief", sim.BriefRows(), args)
}

// runService does the same with whole services.
func runService(t *testing.T, args []string) error {
	return runRows(t, "service", sim.ServiceRows(), args)
}

func runRows(t *testing.T, command string, all []sim.Row, args []string) error {
	fs := newFlags(command)
	fills := fs.Float64("fills", 15, "measured time of each row in `fill times` of its limit, where the row does not say")
	span := fs.Duration("span", 0, "measured `time` of each row, instead")
	only := fs.String("only", "", "`pattern` of the rows to run")
	seed := fs.Uint64("seed", 1, "`seed` of everything random")
	asJSON := fs.Bool("json", false, "print the figures as JSON")
	var store sim.Store
	fs.Var(&store, "store", "`memory` or mini")
	profile := profiled(fs)
	if err := parse(fs, args); err != nil {
		return err
	}
	rows, err := chosen(all, *only, func(e *sim.Experiment) {
		e.Fills, e.Seed, e.Store = *fills, *seed, store
		if *span != 0 {
			e.Span = *span
		}
	})
	if err != nil {
		return err
	}
	stop, err := profile()
	if err != nil {
		return err
	}
	measure(t, rows)
	stop()
	if *asJSON {
		return printJSON(rows)
	}
	return printTable(rows)
}

// tableRow is what a row came to, for programs.
type tableRow struct {
	Name       string
	Operations float64 // per request, Balanced
	Waited     float64 // part of the requests, Balanced
	Admitted   float64 // part of what a perfect central limiter admits, Strict
}

func printJSON(rows []sim.Measured) error {
	list := make([]tableRow, 0, len(rows))
	var wrong []error
	for _, r := range rows {
		list = append(list, tableRow{r.Name, r.Balanced.Operations(), r.Balanced.Waited(), r.Strict.Ratio()})
		wrong = append(wrong, r.Balanced.Err(), r.Strict.Err())
	}
	return errors.Join(append(wrong, json.NewEncoder(os.Stdout).Encode(list))...)
}

// chosen is the rows whose names match a pattern, prepared and valid.
func chosen(all []sim.Row, only string, prepare func(*sim.Experiment)) (rows []sim.Measured, err error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if !pattern.MatchString(r.Name) {
			continue
		}
		prepare(&r.Experiment)
		if err := r.Experiment.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		rows = append(rows, sim.Measured{Row: r})
	}
	if rows == nil {
		return nil, fmt.Errorf("only: no row matches %q", only)
	}
	return rows, nil
}

// measure runs the rows, as many at once as there are processors.
func measure(t *testing.T, rows []sim.Measured) {
	atOnce(2*len(rows), func(i int) {
		m, e := &rows[i/2], rows[i/2].Experiment
		if e.Accuracy = hybrid.Balanced; i%2 == 0 {
			m.Balanced = e.Run(t)
			return
		}
		e.Accuracy = hybrid.Strict
		m.Strict = e.Run(t)
	})
}

// atOnce calls a function for 0 to n−1, on all processors, and tells how far it is.
func atOnce(n int, do func(i int)) {
	var (
		tell       = progress()
		mu         sync.Mutex
		next, done int
		all        sync.WaitGroup
	)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := take(); i < n; i = take() {
				do(i)
				mu.Lock()
				done++
				tell("%d of %d ", done, n)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	tell("")
}

// progress changes one line of a terminal in place; elsewhere it is silent.
func progress() (tell func(format string, args ...any)) {
	info, err := os.Stderr.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(string, ...any) {}
	}
	return func(format string, args ...any) { fmt.Fprintf(os.Stderr, "\r\033[K"+format, args...) }
}

func printTable(rows []sim.Measured) error {
	fmt.Println("| limit, placement, load | operations per request | waited for the store | admitted, of the ideal (Strict) | worst window | denied falsely | over, at worst | × one-shot worst-case bound |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	var wrong []error
	misses := 0
	for i := range rows {
		misses += printRow(&rows[i])
		for _, f := range []*sim.Figures{rows[i].Balanced, rows[i].Strict} {
			if err := f.Err(); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w\nagain: %s", rows[i].Name, err, f.Command()))
			}
		}
	}
	fmt.Printf("\n%d targets missed (✗).\n", misses)
	return errors.Join(wrong...)
}

// printRow returns how many targets are missed.
func printRow(m *sim.Measured) (misses int) {
	mark := func(missed bool) string {
		if missed {
			misses++
			return " ✗"
		}
		return ""
	}
	ops, blocked, admitted := m.Misses()
	waits := "–"
	if m.Blocked > 0 {
		waits = fmt.Sprintf("≤ %.4g %%", 100*m.Blocked)
	}
	window := "–"
	if _, worst := m.Strict.WorstWindow(); !math.IsInf(worst, 1) {
		window = fmt.Sprintf("%.1f %%", 100*worst)
	}
	fmt.Printf("| %s | %.4f (≤ %.4g)%s | %.2f %% (%s)%s | %.1f %% (≥ %.4g %%)%s | %s | %.2f %% | %.1f %% | %.1f |\n", m.Name,
		m.Balanced.Operations(), m.Operations, mark(ops),
		100*m.Balanced.Waited(), waits, mark(blocked),
		100*m.Strict.Ratio(), 100*m.Admitted, mark(admitted),
		window, 100*m.Strict.FalselyDenied(), 100*m.Balanced.Over(), m.Balanced.Competitive())
	return misses
}
