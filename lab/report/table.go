package report

import (
	"fmt"
	"strings"

	"github.com/hybridlimit/hybrid/lab/sim"
)

// column is one column of a table of rows of some kind.
type column[R any] struct {
	title string
	cell  func(r R) string
}

// table writes rows as a Markdown table.
func table[R any](rows []R, columns []column[R]) string {
	var b strings.Builder
	line := func(cell func(c column[R]) string) {
		for _, c := range columns {
			b.WriteString("| " + cell(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(c column[R]) string { return c.title })
	b.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	for _, r := range rows {
		line(func(c column[R]) string { return c.cell(r) })
	}
	return b.String()
}

// pair is a scenario in the two usual settings: costs are read in Balanced,
// what is left unspent in Strict, where no floor can hide it.
type pair struct{ balanced, strict Row }

func (d Data) pairs() (pairs []pair) {
	at := map[string]int{}
	for _, r := range d.Set(Scenarios) {
		i, ok := at[r.Name]
		if !ok {
			i = len(pairs)
			at[r.Name] = i
			pairs = append(pairs, pair{})
		}
		if setting(r) == "Strict" {
			pairs[i].strict = r
		} else {
			pairs[i].balanced = r
		}
	}
	return pairs
}

func balanced(cell func(Row) string) func(pair) string {
	return func(p pair) string { return cell(p.balanced) }
}

func strict(cell func(Row) string) func(pair) string {
	return func(p pair) string { return cell(p.strict) }
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
		"scenarios": captionScenarios + "\n\n```sh\ngo run ./lab docs\n```\n\n" + d.scenarios() + "\n" + d.made(),
		"dial":      d.dialTable(),
		"schemes":   captionSchemes + "\n\n" + d.schemes(),
	}
}

func (d Data) made() string {
	return fmt.Sprintf("%s; times are virtual; one seed a row. [accuracy.json](accuracy.json) has the numbers of all tables and charts, each with the command that repeats it.\n", d.Made)
}

// scenarios has the targets of the rows in parentheses, and a mark where one is missed.
func (d Data) scenarios() string {
	targets := map[string]sim.Targets{}
	for _, r := range sim.Rows() {
		targets[r.Name] = r.Targets
	}
	return table(d.pairs(), []column[pair]{
		{"limit, placement, load", balanced(name)},
		{"operations per request (target)", func(p pair) string { return p.operations(targets) }},
		{"requests that waited for Redis (target)", func(p pair) string { return p.waited(targets) }},
		{"over-admission, worst interval", balanced(over)},
		{"admitted, of what a perfect central limiter admits (Strict; target)", func(p pair) string { return p.ofIdeal(targets) }},
		{"denied although an ideal account had room (Strict)", strict(falseDenials)},
	})
}

func (p pair) operations(targets map[string]sim.Targets) string {
	t := targets[p.balanced.Name]
	missed, _, _ := p.misses(t)
	return operations(p.balanced) + target("≤ %.4g", t.Operations, missed)
}

func (p pair) waited(targets map[string]sim.Targets) string {
	t := targets[p.balanced.Name]
	_, missed, _ := p.misses(t)
	return waited(p.balanced) + target("≤ %.4g %%", 100*t.Blocked, missed)
}

func (p pair) ofIdeal(targets map[string]sim.Targets) string {
	t := targets[p.balanced.Name]
	_, _, missed := p.misses(t)
	return ofIdeal(p.strict) + target("≥ %.4g %%", 100*t.Admitted, missed)
}

func (p pair) misses(t sim.Targets) (operations, blocked, admitted bool) {
	return t.Misses(p.balanced.OperationsPerRequest(), p.balanced.Waited(), p.strict.OfIdeal())
}

// target is what follows a figure: nothing where there is no target.
func target(format string, of float64, missed bool) string {
	if of == 0 {
		return ""
	}
	text := " (" + fmt.Sprintf(format, of) + ")"
	if missed {
		text += " ✗"
	}
	return text
}

func (d Data) dialTable() string {
	return table(d.settings(), []column[Row]{
		{"accuracy", setting},
		{"over-admission, bound", bound},
		{"over-admission, worst measured", over},
		{"requests that waited for Redis", waited},
		{"mean added latency", delay},
		{"operations per request", operations},
		{"admitted, of what a perfect central limiter admits", ofIdeal},
	})
}

func (d Data) schemes() string {
	return table(append(d.Set(Dial), d.Set(Schemes)...), []column[Row]{
		{"scheme", subject},
		{"operations per request", operations},
		{"requests that waited", waited},
		{"mean added latency", delay},
		{"admitted, of what a perfect central limiter admits", ofIdeal},
		{"over-admission, worst key and interval", over},
	})
}

// bound is the over-admission that a setting permits: of rows of Dial, X.
func bound(r Row) string { return fmt.Sprintf("%.0f %%", 100*r.X) }
