package report

import (
	"fmt"
	"strings"
)

// column is one column of a table.
type column struct {
	title string
	cell  func(r Row) string
}

// table writes rows as a Markdown table.
func table(rows []Row, columns []column) string {
	var b strings.Builder
	line := func(cell func(c column) string) {
		for _, c := range columns {
			b.WriteString("| " + cell(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(c column) string { return c.title })
	b.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	for _, r := range rows {
		line(func(c column) string { return c.cell(r) })
	}
	return b.String()
}

func name(r Row) string    { return r.Name }
func subject(r Row) string { return r.Subject }

// setting is the library's dial alone, without the library's name.
func setting(r Row) string { return strings.TrimPrefix(r.Subject, hybridPrefix) }

func operations(r Row) string { return fmt.Sprintf("%.4f", r.OperationsPerRequest()) }
func waited(r Row) string     { return fmt.Sprintf("%.2f %%", 100*r.Waited()) }
func delay(r Row) string      { return fmt.Sprintf("%.4f ms", r.MeanDelay()) }
func ofIdeal(r Row) string    { return fmt.Sprintf("%.1f %%", 100*r.OfIdeal()) }
func over(r Row) string       { return fmt.Sprintf("%.1f %%", 100*r.Over()) }

func falseDenials(r Row) string {
	return fmt.Sprintf("%.2f %%", 100*ratio(r.FalseDenials, r.Requests))
}

// tables are the blocks of tables in the document, by name.
func (d Data) tables() map[string]string {
	return map[string]string{
		"scenarios": table(d.Set(Scenarios), []column{
			{"limit, placement, load", name},
			{"accuracy", setting},
			{"operations per request", operations},
			{"requests that waited for Redis", waited},
			{"admitted, of what a perfect central limiter admits", ofIdeal},
			{"denied although an ideal account had room", falseDenials},
		}),
		"dial": table(d.Set(Dial), []column{
			{"accuracy", setting},
			{"over-admission, bound", bound},
			{"measured, worst interval", over},
			{"requests that waited for Redis", waited},
			{"mean added latency", delay},
			{"operations per request", operations},
			{"admitted, of what a perfect central limiter admits", ofIdeal},
		}),
		"schemes": table(d.Set(Schemes), []column{
			{"scheme", subject},
			{"operations per request", operations},
			{"requests that waited", waited},
			{"mean added latency", delay},
			{"admitted, of what a perfect central limiter admits", ofIdeal},
			{"over-admission, worst interval", over},
		}),
		"made": fmt.Sprintf("%s (times are virtual), one seed a row. All rows, each with the command that repeats it: [accuracy.json](accuracy.json).\n", d.Made),
	}
}

// bound is the over-admission that a setting permits: of rows of Dial, X.
func bound(r Row) string { return fmt.Sprintf("%.0f %%", 100*r.X) }
