package report

import (
	"fmt"
	"os"
	"strings"
)

// Document holds the measured blocks. Commands run in the repository's root.
const Document = "docs/benchmarks.md"

// A measured block stands in the document between two comments:
//
//	<!-- NAME -->
//	<!-- end: NAME -->
func markers(name string) (begin, end string) {
	return fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- end: %s -->\n", name)
}

// Replace puts text between the markers of a block, which must be there once.
func Replace(doc, name, text string) (string, error) {
	begin, end := markers(name)
	if strings.Count(doc, begin) != 1 || strings.Count(doc, end) != 1 {
		return "", fmt.Errorf("report: want one %q and one %q in the document", begin, end)
	}
	from, to := strings.Index(doc, begin)+len(begin), strings.Index(doc, end)
	if to < from {
		return "", fmt.Errorf("report: block %q ends before it begins", name)
	}
	return doc[:from] + text + doc[to:], nil
}

// Check reports whether a document has these blocks.
func Check(path string, names ...string) error {
	doc, err := read(path)
	for _, name := range names {
		if err == nil {
			_, err = Replace(doc, name, "")
		}
	}
	return err
}

func read(path string) (string, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("report: run it from the repository's root: %w", err)
	}
	return string(file), nil
}

// Write puts blocks into a document, by name. It writes all of them or nothing.
func Write(path string, blocks map[string]string) error {
	doc, err := read(path)
	if err != nil {
		return err
	}
	for name, text := range blocks {
		if doc, err = Replace(doc, name, text); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(doc), 0o644)
}
