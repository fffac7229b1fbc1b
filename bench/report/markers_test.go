package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const twoBlocks = "before\n<!-- a -->\nold\n<!-- end: a -->\nbetween\n<!-- b -->\n<!-- end: b -->\nafter\n"

func TestABlockIsReplacedAndNothingElse(t *testing.T) {
	once, err := Replace(twoBlocks, "a", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(twoBlocks, "old\n", "new\n", 1)
	if once != want {
		t.Fatalf("got\n%s\nwant\n%s", once, want)
	}
	if twice, err := Replace(once, "a", "new\n"); err != nil || twice != once {
		t.Errorf("the second time: %q, %v", twice, err)
	}
}

func TestAMissingOrDoubleMarkerIsRefused(t *testing.T) {
	for _, doc := range []string{
		"",
		"<!-- a -->\n",
		"<!-- end: a -->\n",
		"<!-- end: a -->\n<!-- a -->\n",
		"<!-- a -->\n<!-- end: a -->\n<!-- a -->\n<!-- end: a -->\n",
	} {
		if got, err := Replace(doc, "a", "new\n"); err == nil {
			t.Errorf("%q: got %q and no error", doc, got)
		}
	}
}

func TestADocumentIsWrittenWhollyOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(path, []byte(twoBlocks), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, map[string]string{"a": "x\n", "b": "y\n", "c": "z\n"}); err == nil {
		t.Error("a block that is not there: no error")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != twoBlocks {
		t.Fatalf("after the error: %q, %v", got, err)
	}
	if err := Write(path, map[string]string{"a": "x\n", "b": "y\n"}); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(strings.Replace(twoBlocks, "old\n", "x\n", 1), "<!-- b -->\n", "<!-- b -->\ny\n", 1)
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// The document has a block for everything that is measured, also by others.
func TestTheDocumentHasItsBlocks(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", Document))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bench:peers", "bench:maps", "bench:service", "bench:store", "lab:scaling"} {
		if _, err := Replace(string(doc), name, ""); err != nil {
			t.Error(err)
		}
	}
}
