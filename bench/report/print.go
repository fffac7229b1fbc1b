package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Print writes the table for a terminal.
func (t *Table) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n%s\n\n", t.Title, t.About)
	lines := t.cells()
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, b.String())
	}
	for _, note := range t.Notes {
		fmt.Fprintln(w, "- "+note)
	}
}

// Markdown is the table as a section of the document. why gives the reason for
// each peer's lead; one that has none is named without.
func (t *Table) Markdown(why func(table, row string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s\n\n", t.Title, t.About)
	lines := t.cells()
	for i, line := range lines {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(line)-1) + "\n")
		}
	}
	b.WriteString("\n")
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	for _, w := range t.Wins() {
		b.WriteString(w.line(t.Name, why))
	}
	if !strings.HasSuffix(b.String(), "\n\n") {
		b.WriteString("\n")
	}
	return b.String()
}

func (w Win) line(table string, why func(table, row string) string) string {
	line := fmt.Sprintf("- **%s is ahead** (%s)", w.Row, strings.Join(w.Columns, "; "))
	if reason := why(table, w.Row); reason != "" {
		line += ": " + reason
	}
	return line + "\n"
}
