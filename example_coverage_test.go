package hybrid_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// noExample says which exported functions need no example, and why: those of a folder,
// or one, as in "exact.New" or "exact.Store.Take".
var noExample = map[string]string{
	"precheck":          "a part that hybrid is made of: services call none of it",
	"slice":             "a part that hybrid is made of: services call none of it",
	"syncer":            "a part that hybrid is made of: services call none of it",
	"contrib/hybridrls": "a service: its command, example.yaml and the example of the package show it",
}

// programs are folders of which nobody imports a package.
var programs = []string{"bench", "chaos", "examples", "lab"}

// Every exported function has an example that runs: one of its own, or one of its type
// or package that calls it. See noExample for the others.
func TestExamples(t *testing.T) {
	functions, missing, err := withoutExample(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if functions < 50 {
		t.Fatalf("only %d exported functions were found: is this the root of the repository?", functions)
	}
	used := map[string]bool{}
	for _, name := range missing {
		switch reason := reasonFor(name); reason {
		case "":
			t.Errorf("%s has no example with // Output", name)
		default:
			used[reason] = true
		}
	}
	for name := range noExample {
		if _, err := os.Stat(strings.SplitN(name, ".", 2)[0]); err == nil && !used[name] {
			t.Errorf("noExample: %s is not needed any more", name)
		}
	}
}

// reasonFor returns the entry of noExample for a function.
func reasonFor(name string) string {
	folder, _, _ := strings.Cut(name, ".")
	for _, entry := range []string{name, folder} {
		if noExample[entry] != "" {
			return entry
		}
	}
	return ""
}

// withoutExample lists the exported functions of a source tree that no example shows,
// as folder.Name or folder.Type.Name, and counts all of them.
func withoutExample(tree fs.FS) (functions int, missing []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "internal" || slices.Contains(programs, name)):
			return fs.SkipDir
		}
		p, err := documented(tree, name)
		if err != nil || p == nil {
			return err
		}
		n, unshown := examine(p)
		functions += n
		for _, f := range unshown {
			missing = append(missing, strings.TrimPrefix(name+"."+f, ".."))
		}
		return nil
	})
	return functions, missing, err
}

// documented reads a folder; nil if it has no package to import.
func documented(tree fs.FS, folder string) (*doc.Package, error) {
	names, err := fs.Glob(tree, path.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	set, library := token.NewFileSet(), false
	var files []*ast.File
	for _, name := range names {
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(set, name, src, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		library = library || !strings.HasSuffix(name, "_test.go") && f.Name.Name != "main"
		files = append(files, f)
	}
	if !library {
		return nil, nil
	}
	return doc.NewFromFiles(set, files, "example/"+folder)
}

// examine goes through the functions and methods of a package.
func examine(p *doc.Package) (functions int, unshown []string) {
	look := func(prefix string, f *doc.Func, others []*doc.Example) {
		if f.Name == "String" && f.Recv != "" {
			return // fmt calls it
		}
		functions++
		if !shows(f.Examples, "") && !shows(others, f.Name) {
			unshown = append(unshown, prefix+f.Name)
		}
	}
	for _, f := range p.Funcs {
		look("", f, p.Examples)
	}
	for _, t := range p.Types {
		others := slices.Concat(p.Examples, t.Examples)
		for _, f := range slices.Concat(t.Funcs, t.Methods) {
			others = append(others, f.Examples...)
		}
		for _, f := range t.Funcs {
			look("", f, others)
		}
		for _, f := range t.Methods {
			look(t.Name+".", f, others)
		}
	}
	return functions, unshown
}

// shows reports whether one of the examples runs and calls a function of that name; any
// function if that is "".
func shows(examples []*doc.Example, name string) bool {
	return slices.ContainsFunc(examples, func(e *doc.Example) bool {
		called := name == ""
		ast.Inspect(e.Code, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				sel, ok := call.Fun.(*ast.SelectorExpr)
				called = called || ok && sel.Sel.Name == name
			}
			return true
		})
		return called && (e.Output != "" || e.EmptyOutput)
	})
}

func TestExamplesAreMissed(t *testing.T) {
	functions, missing, err := withoutExample(fstest.MapFS{
		"go.mod":    {Data: []byte("module m")},
		"a.go":      {Data: []byte("package a\n\nfunc Shown() {}\nfunc Silent() {}\nfunc hidden() {}\n")},
		"a_test.go": {Data: []byte("package a_test\n\nimport \"m\"\n\nfunc ExampleShown() {\n\ta.Shown()\n\t// Output:\n}\n\nfunc ExampleSilent() {\n\ta.Silent()\n}\n")},
		"b/b.go": {Data: []byte("package b\n\ntype T struct{}\n\nfunc New() *T { return nil }\nfunc (*T) One() {}\nfunc (*T) Two() {}\n" +
			"func (*T) String() string { return \"\" }\n")},
		"b/b_test.go":     {Data: []byte("package b\n\nfunc ExampleT_both() {\n\tNew()\n\tb.New().One()\n\t// Output:\n}\n")},
		"internal/c/c.go": {Data: []byte("package c\n\nfunc New() {}\n")},
		"cmd/main.go":     {Data: []byte("package main\n\nfunc New() {}\n")},
	})
	if want := []string{"Silent", "b.T.Two"}; err != nil || functions != 5 || !slices.Equal(missing, want) {
		t.Errorf("%d functions, without an example %q, %v; want %q of 5", functions, missing, err, want)
	}
}
