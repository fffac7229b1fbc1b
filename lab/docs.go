package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid/lab/report"
	"github.com/hybridlimit/hybrid/lab/survey"
)

// runDocs measures what docs/accuracy.md shows and writes it: the numbers, the
// tables in the text, and the pictures. It is run from the repository's root.
func runDocs(t *testing.T, args []string) error {
	flags := newFlags("docs")
	only := flags.String("only", "", "measure only sets of rows that match this `pattern`; keep the others as they are")
	render := flags.Bool("render", false, "measure nothing: write tables and pictures for the numbers that are there")
	if err := parse(flags, args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	d, err := readData()
	if err != nil {
		return err
	}
	if !*render {
		old := d.Made
		if d, err = measureDocs(t, d, pattern); err != nil {
			return err
		}
		if *only != "" {
			d.Made += fmt.Sprintf(" (%s); the rest: %s", *only, old)
		}
	}
	return writeDocs(d)
}

// readData reads the numbers that are there; none is no error.
func readData() (report.Data, error) {
	file, err := os.ReadFile(report.Numbers)
	if errors.Is(err, fs.ErrNotExist) {
		return report.Data{}, nil
	}
	if err != nil {
		return report.Data{}, err
	}
	return report.Parse(file)
}

// measureDocs measures the runs of the plan whose set matches, and keeps the old
// rows of the others.
func measureDocs(t *testing.T, old report.Data, pattern *regexp.Regexp) (report.Data, error) {
	d := report.Data{Made: fmt.Sprintf("%s, %s, %s/%s", time.Now().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH)}
	var runs []survey.Run
	var places []int // of the runs among the rows
	for _, r := range survey.Plan() {
		row := r.Row
		if pattern.MatchString(r.Set) {
			runs, places = append(runs, r), append(places, len(d.Rows))
		} else if kept, ok := old.Find(r.Row); ok {
			row = kept
		} else {
			return d, fmt.Errorf("docs: a row of %q is new: measure that set too", r.Set)
		}
		d.Rows = append(d.Rows, row)
	}
	if len(runs) == 0 {
		return d, fmt.Errorf("only: no set of rows matches %q", pattern)
	}
	errs := make([]error, len(runs))
	atOnce(len(runs), func(i int) { d.Rows[places[i]], errs[i] = runs[i].Measure(t) })
	return d, errors.Join(errs...)
}

// writeDocs writes all generated files.
func writeDocs(d report.Data) error {
	doc, err := os.ReadFile(report.Document)
	if err != nil {
		return fmt.Errorf("docs: run it from the repository's root: %w", err)
	}
	files, err := d.Files(string(doc))
	if err != nil {
		return err
	}
	return writeFiles(files)
}

// writeFiles writes files by path.
func writeFiles(files map[string][]byte) error {
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
