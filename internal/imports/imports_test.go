// Package imports_test keeps the data flowing one way: request → hybrid →
// slice → precheck → exact → Redis. It reads every file in the repository that is
// no test, whatever its module or build tags.
package imports_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	module    = "github.com/hybridlimit/hybrid"
	goRedis   = "github.com/redis/go-redis"
	miniredis = "github.com/alicebob/miniredis"
	rapid     = "pgregory.net/rapid"
)

// layers says which of our packages a package may import, by its folder.
// Packages that are not in it stand outside the core and may import all of it.
var layers = map[string][]string{
	"slice":                {},
	"precheck":             {"slice"},
	"exact":                {"slice"},
	"internal/key":         {"slice", "precheck"},
	"internal/batch":       {"slice"},
	"internal/fleet":       {"slice", "precheck"},
	"syncer":               {"slice", "precheck", "internal/key", "internal/batch", "internal/fleet"},
	"internal/cause":       {"exact", "syncer"},
	"internal/redisclient": {},
	"internal/journal":     {},
	"internal/waiting":     {"syncer"},
	".":                    {"slice", "precheck", "exact", "syncer", "internal/key", "internal/batch", "internal/cause", "internal/redisclient", "internal/journal", "internal/waiting"},
	"internal/modelcheck":  {"slice", "internal/ledger"},
	"internal/ledger":      {"slice"}, // a reference that borrowed from what it is held against would prove nothing
}

// speakRedis are the core packages that may import the client: exact makes the calls, the root
// names its type in New, and two look at its settings and its errors.
var speakRedis = []string{"exact", ".", "internal/cause", "internal/redisclient"}

// clockless are the pure cores: they are given times, and know only durations.
var clockless = []string{"slice", "precheck", "internal/key", "internal/modelcheck"}

// readsClock are the functions of package time that a pure core must not call.
var readsClock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// forTests must not be compiled into a program that uses the library.
var forTests = []string{
	module + "/internal/httpsuite",
	module + "/internal/ledger",
	module + "/internal/modelcheck",
	module + "/internal/redistest",
	module + "/internal/oracle",
	module + "/internal/zipf",
	miniredis,
	rapid,
	"testing",
}

func TestImportDirections(t *testing.T) {
	files := 0
	bad, err := check(os.DirFS("../.."), &files)
	if err != nil {
		t.Fatal(err)
	}
	if files < 5 {
		t.Fatalf("only %d Go files were found: is this the root of the repository?", files)
	}
	for _, b := range bad {
		t.Error(b)
	}
}

// check lists the violations in a source tree and counts the files it read.
func check(tree fs.FS, files *int) (bad []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipDir(name):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		*files++
		found, err := checkFile(tree, name)
		bad = append(bad, found...)
		return err
	})
	return bad, err
}

func skipDir(name string) bool {
	base := path.Base(name)
	return name != "." && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"))
}

func checkFile(tree fs.FS, name string) (bad []string, err error) {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if why := forbidden(path.Dir(name), imported); why != "" {
			bad = append(bad, fmt.Sprintf("%s imports %s: %s", name, imported, why))
		}
	}
	if slices.Contains(clockless, path.Dir(name)) {
		bad = append(bad, clockReads(name, f)...)
	}
	return bad, nil
}

// clockReads finds what a file uses of the clock.
func clockReads(name string, f *ast.File) (bad []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		sel, isSelector := n.(*ast.SelectorExpr)
		if !isSelector {
			return true
		}
		if pkg, isName := sel.X.(*ast.Ident); isName && pkg.Name == "time" && slices.Contains(readsClock, sel.Sel.Name) {
			bad = append(bad, fmt.Sprintf("%s uses time.%s: %v are given times and read no clock", name, sel.Sel.Name, clockless))
		}
		return true
	})
	return bad
}

// forbidden says why the package in folder dir must not import a path, or "".
func forbidden(dir, imported string) string {
	usesTests := within(dir, "internal") || within(dir, "examples") || within(dir, "lab") || within(dir, "bench") ||
		within(dir, "contrib/hybridrls/cmd") // which embeds a Redis to be tried with
	if !usesTests && slices.ContainsFunc(forTests, func(p string) bool { return within(imported, p) }) {
		return "it is for tests, examples, benchmarks and the lab"
	}
	allowed, isLayer := layers[dir]
	if !isLayer {
		return ""
	}
	if within(imported, goRedis) && !slices.Contains(speakRedis, dir) {
		return "only " + strings.Join(speakRedis, " and ") + " speak to Redis"
	}
	if within(imported, module) && !slices.Contains(allowed, folder(imported)) {
		return fmt.Sprintf("of ours, %s may import only %v", dir, allowed)
	}
	return ""
}

// within says whether a path is parent or lies below it.
func within(p, parent string) bool {
	return p == parent || strings.HasPrefix(p, parent+"/")
}

// folder is where a package of ours lies.
func folder(imported string) string {
	if imported == module {
		return "."
	}
	return strings.TrimPrefix(imported, module+"/")
}

// A check that cannot fail proves nothing: each of these trees breaks one rule.
func TestViolationsAreFound(t *testing.T) {
	for _, c := range []struct{ file, imported string }{
		{"slice/a.go", module + "/exact"},
		{"slice/a.go", module + "/precheck"},
		{"slice/a.go", module},
		{"slice/a.go", module + "/internal/anything"},
		{"slice/a.go", goRedis + "/v9"},
		{"precheck/a.go", module + "/syncer"},
		{"precheck/a_linux.go", goRedis + "/v9"},
		{"exact/a.go", module + "/syncer"},
		{"exact/a.go", module + "/precheck"},
		{"exact/testing.go", "testing"},
		{"syncer/a.go", module + "/exact"},
		{"syncer/a.go", module},
		{"syncer/a.go", goRedis + "/v9/internal"},
		{"hybrid.go", module + "/httplimit"},
		{"hybrid.go", module + "/internal/oracle"},
		{"hybrid.go", module + "/internal/ledger"},
		{"hybrid.go", module + "/internal/zipf"},
		{"syncer/a.go", module + "/internal/ledger"},
		{"internal/ledger/a.go", module + "/exact"},
		{"internal/ledger/a.go", goRedis + "/v9"},
		{"hybrid.go", miniredis + "/v2"},
		{"hybrid.go", "testing/synctest"},
		{"httplimit/a.go", module + "/internal/redistest"},
		{"contrib/hybridgin/a.go", module + "/internal/httpsuite"},
		{"contrib/prom/a.go", miniredis + "/v2/server"},
		{"contrib/prom/a.go", rapid},
	} {
		files := 0
		bad, err := check(tree(c.file, c.imported), &files)
		if err != nil || files != 1 {
			t.Fatalf("%s: %d files, %v", c.file, files, err)
		}
		if len(bad) != 1 || !strings.Contains(bad[0], c.file+" imports "+c.imported) {
			t.Errorf("%s importing %s: got %q", c.file, c.imported, bad)
		}
	}
}

func TestClockReadsAreFound(t *testing.T) {
	const src = "package p\n\nimport \"time\"\n\nvar d = time.Second\nvar t = time.Now()\n"
	for dir, want := range map[string]int{"slice": 1, "precheck": 1, "syncer": 0, ".": 0} {
		files := 0
		bad, err := check(fstest.MapFS{path.Join(dir, "a.go"): {Data: []byte(src)}}, &files)
		if err != nil || len(bad) != want {
			t.Errorf("%s: got %q, %v, want %d", dir, bad, err, want)
		}
	}
}

func TestRightDirectionsPass(t *testing.T) {
	for _, c := range []struct{ file, imported string }{
		{"slice/a.go", "sync/atomic"},
		{"slice/a_test.go", rapid},
		{"precheck/a.go", module + "/slice"},
		{"exact/a.go", goRedis + "/v9"},
		{"syncer/a.go", module + "/precheck"},
		{"hybrid.go", goRedis + "/v9"},
		{"hybrid.go", module + "/syncer"},
		{"httplimit/a.go", module},
		{"examples/quickstart/main.go", miniredis + "/v2"},
		{"internal/redistest/a.go", "testing"},
		{"internal/ledger/a.go", module + "/slice"},
		{"lab/sim/a.go", module + "/internal/ledger"},
		{"lab/sim/a.go", module + "/internal/zipf"},
		{"bench/measure/a.go", module + "/internal/zipf"},
		{"slice/testdata/a.go", goRedis + "/v9"},
	} {
		files := 0
		if bad, err := check(tree(c.file, c.imported), &files); err != nil || len(bad) != 0 {
			t.Errorf("%s importing %s: got %q, %v", c.file, c.imported, bad, err)
		}
	}
}

func tree(file, imported string) fs.FS {
	return fstest.MapFS{file: {Data: []byte("package p\n\nimport _ " + strconv.Quote(imported) + "\n")}}
}
