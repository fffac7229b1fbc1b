package report

import (
	"fmt"
	"strings"
)

// A generated block stands in a document between two comments:
//
//	<!-- generated: NAME -->
//	<!-- end: NAME -->
func markers(name string) (begin, end string) {
	return fmt.Sprintf("<!-- generated: %s -->\n", name), fmt.Sprintf("<!-- end: %s -->\n", name)
}

// replace puts text between the markers of a block, which must be there once.
func replace(doc, name, text string) (string, error) {
	begin, end := markers(name)
	return replaceBetween(doc, begin, end, text)
}

// replaceBetween does it for any markers.
func replaceBetween(doc, begin, end, text string) (string, error) {
	if strings.Count(doc, begin) != 1 || strings.Count(doc, end) != 1 {
		return "", fmt.Errorf("report: want one %q and one %q in the document", begin, end)
	}
	from, to := strings.Index(doc, begin)+len(begin), strings.Index(doc, end)
	if to < from {
		return "", fmt.Errorf("report: block %q ends before it begins", begin)
	}
	return doc[:from] + text + doc[to:], nil
}
