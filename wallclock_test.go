package hybrid

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Nodes whose wall clocks disagree by seconds are one fleet like any other:
// only the store's clock counts.
func TestSkewedClients(t *testing.T) {
	limit := PerSecond(10)
	for _, skew := range []time.Duration{-3 * time.Second, 0, 3 * time.Second} {
		setup := strict(3, limit)
		setup.skew = skew
		inBubble(t, setup, func(f *fleet) {
			if got := f.everyone(10, 0, "k", 1); got != 10 {
				t.Errorf("skew %v: %d of 30 admitted at once, want 10", skew, got)
			}
			f.checkTTLs(skew)
			for range 50 { // and under load for 5 s
				f.everyone(2, 100*time.Millisecond, "k", 1) // which takes 50 ms
				time.Sleep(50 * time.Millisecond)
				f.checkTTLs(skew)
			}
			f.checkBound(limit, 0)
			f.checkCost()
			if got := f.used("k"); got < 58 {
				t.Errorf("skew %v: admitted %d in 5 s of 10/s and a burst of 10", skew, got)
			}
		})
	}
}

// checkTTLs fails the test if anything in the store could stay for ever, or if
// an account outlives its use by more than a few periods of a second.
func (f *fleet) checkTTLs(skew time.Duration) {
	f.t.Helper()
	for _, key := range f.mini.Keys() {
		if f.mini.TTL(key) <= 0 {
			f.t.Errorf("skew %v: %q has no TTL", skew, key)
		}
	}
	if left := f.ttl("k"); f.state("k", PerSecond(10)).Lent == 0 && left > 3*time.Second {
		f.t.Errorf("skew %v: nothing is lent, and the account lives for %v", skew, left)
	}
}

// The packages that decide must not look at the wall clock, not even for a log
// line: it would work on one machine and fail in a fleet. Nor does the one that
// callers use: between two times of one process the monotonic clock counts.
func TestNoWallClock(t *testing.T) {
	for _, pkg := range []string{"slice", "precheck", "syncer", "exact", "."} {
		files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		if err != nil || len(files) < 5 {
			t.Fatalf("%s: %d files, %v", pkg, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, reading := range wallClockReadings(set, file) {
				t.Error(reading)
			}
		}
	}
}

// wallClock is what turns a time.Time into a reading of the wall clock, or one
// into a time.Time. Now, Since, Until and Sub are not in it: between two times
// of one process they use the monotonic clock, unless Round or UTC and their
// like have stripped it.
var wallClock = map[string]bool{
	"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true, "Date": true, "Clock": true,
	"Year": true, "Month": true, "Day": true, "YearDay": true, "Weekday": true, "ISOWeek": true,
	"Hour": true, "Minute": true, "Second": true, "Nanosecond": true, "Format": true, "AppendFormat": true,
	"MarshalText": true, "MarshalJSON": true, "MarshalBinary": true, "Round": true, "Truncate": true,
	"UTC": true, "Local": true, "In": true, "Parse": true, "ParseInLocation": true,
}

// wallClockReadings lists the calls that read the wall clock. It goes by names:
// a method of ours of such a name had better be called otherwise. Functions of
// package math and its like are no methods of a time.
func wallClockReadings(set *token.FileSet, file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !wallClock[sel.Sel.Name] {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "math" || pkg.Name == "rand") {
			return true
		}
		found = append(found, fmt.Sprintf("%v: %s reads or makes a wall-clock time", set.Position(call.Pos()), sel.Sel.Name))
		return true
	})
	return found
}

// The check above finds what it looks for.
func TestWallClockIsFound(t *testing.T) {
	const source = `package p
import "time"
var a, b, c = time.Now().UnixNano(), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().Sub(time.Now())`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := wallClockReadings(set, file); len(found) != 2 {
		t.Errorf("found %q, want UnixNano and Date", found)
	}
}
