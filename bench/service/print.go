package service

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print tells a report, and its profiles if there are any, on a terminal.
func (rep *Report) Print(out io.Writer, prof *Profiles) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s; Redis %s\n\n", rep.Settings.title(), rep.Redis)
	line(w, "", rep.names())
	for _, r := range rep.table() {
		line(w, r.name, r.cells)
	}
	fmt.Fprintln(w)
	line(w, "hybrid, by who answered", pathHeads())
	for _, r := range rep.pathRows() {
		line(w, r.name, r.cells)
	}
	if prof != nil {
		prof.print(w)
	}
	fmt.Fprintln(w)
	for _, t := range rep.targets() {
		fmt.Fprintf(w, "target\t%s\t%s\t%s\t%s\n", t.what, t.want, t.got, mark(t.reached))
	}
	return w.Flush()
}

func (p *Profiles) print(w io.Writer) {
	rows, sum, above := p.lockRows()
	fmt.Fprintf(w, "\nprocessor time\t%s\n", p.parts())
	fmt.Fprintf(w, "locks\t%.1f %% of the samples, %d above 1 %%\n\n", 100*sum, above)
	line(w, lockHeads[0], lockHeads[1:])
	for _, r := range rows {
		line(w, r.name, r.cells)
	}
	fmt.Fprintln(w)
	line(w, waitHeads[0], waitHeads[1:])
	for _, r := range p.waitRows() {
		line(w, r.name, r.cells)
	}
}

func line(w io.Writer, name string, cells []string) {
	fmt.Fprintf(w, "%s\t%s\n", name, strings.Join(cells, "\t"))
}

func mark(reached bool) string {
	if reached {
		return "reached"
	}
	return "✗"
}

func (rep *Report) names() (names []string) {
	for _, r := range rep.Results {
		names = append(names, r.Name)
	}
	return names
}

func pathHeads() []string {
	heads := []string{"of the requests"}
	for _, p := range percentiles {
		heads = append(heads, p.name)
	}
	return heads
}

// Markdown is the same as a part of a document. The pictures are beside it.
func (rep *Report) Markdown(made string, prof *Profiles) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, each node with a Redis client of its own, generator, nodes and one Redis on the same processors; warm-up of %v, then %v.\n\n",
		rep.Settings.title(), rep.Settings.Warmup+rep.Settings.Settling, rep.Settings.Measured)
	b.WriteString("```sh\ngo run ./bench/cmd/service -docs\n```\n\n")
	b.WriteString(reading)
	markdownTable(&b, append([]string{""}, rep.names()...), rep.table())
	b.WriteString("\n![Added latency against its percentile, with the usual budget of 2 ms](service-latency.svg)\n\n")
	b.WriteString("Who answered, and how long the call took:\n\n")
	markdownTable(&b, append([]string{"hybrid"}, pathHeads()...), rep.pathRows())
	b.WriteString("\n")
	var rows []row
	for _, t := range rep.targets() {
		rows = append(rows, row{t.what, []string{t.want, t.got + reachedMark(t.reached)}})
	}
	markdownTable(&b, []string{"target", "wanted", "measured"}, rows)
	if prof != nil {
		prof.markdown(&b)
	}
	fmt.Fprintf(&b, "\n%s.\n", made)
	return b.String()
}

// reading says what the rows mean.
const reading = `Arrivals are an open Poisson stream: they wait for no answer, and one that is late counts from when it was due (no coordinated omission). *Added by the call* is the time in the limiter; *as the caller sees it* begins when the request was due, and so holds the delays of timers and processors as well. Those are what the *control* shows, the same load on a function that returns at once, and the empty limiter, which is asked beside the others in each run. *A map alone* is a lookup of the key and a compare-and-swap on each node, and limits nothing: with so many keys it takes what memory takes. What asks Redis for each request is shown at the highest rate that it carries, with 99 of 100 callers served within 20 ms, and at half of it.

`

func reachedMark(reached bool) string {
	if reached {
		return ""
	}
	return " ✗"
}

func markdownTable(b *strings.Builder, heads []string, rows []row) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %s |\n", r.name, strings.Join(r.cells, " | "))
	}
}
