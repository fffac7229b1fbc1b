package imports_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rooms are the parts of the core, with the product lines (tests aside) that they may have
// at most. A ceiling is what was reached, and may only fall; goal is where it is to go.
var rooms = []struct {
	dirs          []string
	ceiling, goal int
}{
	{[]string{"syncer", "internal/key", "internal/batch", "internal/fleet"}, 6062, 3400},
	{[]string{"."}, 2270, 1900},
}

// data are structs that only carry values: configuration, counters, what a step sees, what
// people look at. Any other struct of the core has at most 14 fields.
var data = []string{
	"Stats", "LimiterStats", "KeyState", "Options", "Config", "Counts", "View", "Env", "Tally",
	"events", // of the root: to be split when it moves
}

const (
	longestFunc   = 60
	longestFile   = 300 // of syncer and its rooms
	largestStruct = 14
)

// TestSizes prints how large the core is, and fails where it has grown beyond its sizes.
func TestSizes(t *testing.T) {
	for _, room := range rooms {
		lines := 0
		for _, dir := range room.dirs {
			for _, name := range product(t, dir) {
				n := measure(t, name)
				if lines += n; n > longestFile && dir != "." {
					t.Errorf("%s has %d lines, at most %d", name, n, longestFile)
				}
			}
		}
		t.Logf("%s: %d product lines, goal %d", strings.Join(room.dirs, " "), lines, room.goal)
		if lines > room.ceiling {
			t.Errorf("%s: %d product lines, at most %d", strings.Join(room.dirs, " "), lines, room.ceiling)
		}
	}
	for _, dir := range []string{"slice", "precheck", "exact"} {
		for _, name := range product(t, dir) {
			measure(t, name)
		}
	}
}

// product lists the files of a folder that are compiled into programs.
func product(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return names
}

// measure checks the functions and structs of a file, and returns its lines.
func measure(t *testing.T, name string) int {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if lines := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1; lines > longestFunc {
				t.Errorf("%s: %s has %d lines, at most %d", name, n.Name.Name, lines, longestFunc)
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok && !isData(n.Name.Name) && fields(s) > largestStruct {
				t.Errorf("%s: %s has %d fields, at most %d", name, n.Name.Name, fields(s), largestStruct)
			}
		}
		return true
	})
	return strings.Count(string(text), "\n")
}

func isData(name string) bool {
	for _, d := range data {
		if d == name {
			return true
		}
	}
	return false
}

func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
}

// A struct of too many fields, a function of too many lines and a file that is no Go must be
// found, or the sizes would be held by nothing.
func TestSizesAreMeasured(t *testing.T) {
	s := &ast.StructType{Fields: &ast.FieldList{}}
	for i := range 3 {
		s.Fields.List = append(s.Fields.List, &ast.Field{Names: []*ast.Ident{ast.NewIdent(fmt.Sprint("a", i)), ast.NewIdent(fmt.Sprint("b", i))}})
	}
	s.Fields.List = append(s.Fields.List, &ast.Field{Type: ast.NewIdent("embedded")})
	if n := fields(s); n != 7 {
		t.Errorf("%d fields, want 7: embedded ones count", n)
	}
	if isData("Syncer") || isData("Limiter") || isData("State") {
		t.Error("what has behaviour is no data")
	}
}
