package service

import (
	"fmt"
	"time"
)

// row is one line of the comparison.
type row struct {
	name  string
	cells []string // of each result
}

// table is what the results are told in, on the terminal and in the document.
func (rep *Report) table() (rows []row) {
	add := func(name string, cell func(r *Result) string) {
		line := row{name: name}
		for _, r := range rep.Results {
			line.cells = append(line.cells, cell(r))
		}
		rows = append(rows, line)
	}
	add("requests per second", func(r *Result) string { return fmt.Sprint(r.Plan.Rate) })
	for _, p := range percentiles {
		add("added by the call, "+p.name, func(r *Result) string { return short(r.latencies.added.at(p.q)) })
	}
	for _, p := range percentiles {
		add("as the caller sees it, "+p.name, func(r *Result) string { return short(r.latencies.seen.at(p.q)) })
	}
	add("an empty limiter beside it, p50 / p99.9 / p100", func(r *Result) string {
		b := r.latencies.beside
		return fmt.Sprintf("%s / %s / %s", short(b.at(50)), short(b.at(99.9)), short(b.at(100)))
	})
	add("requests that waited for Redis", waited)
	add("Redis operations per request", func(r *Result) string { return perRequestText(r.books.operations, r.requests, "%.4f") })
	add("Redis operations per second", func(r *Result) string { return perSecond(r.books.operations, r.elapsed) })
	add("calls per second that carry them", func(r *Result) string { return perSecond(r.books.calls, r.elapsed) })
	add("scripts per second, by Redis; µs each", scripts)
	add("Redis's processor time, of a core", func(r *Result) string {
		if r.control {
			return "–"
		}
		return fmt.Sprintf("%.1f %%", 100*share(r.redis.cpu, r.elapsed))
	})
	add("processor time of the process per request", func(r *Result) string { return perCall(r.own.cpu, r.requests) })
	add("of it, the garbage collector (cycles)", func(r *Result) string {
		return fmt.Sprintf("%s (%d)", perCall(r.own.gc, r.requests), r.own.cycles)
	})
	add("memory in use by the process, after its last collection", func(r *Result) string { return fmt.Sprintf("%d MB", r.own.heap>>20) })
	add("processor time of other programs, of a core", others)
	add("calls under way, at most", func(r *Result) string { return fmt.Sprint(r.busiest) })
	add("admitted, of what a perfect central limiter admits", admitted)
	add("beyond the limit, worst key and interval", beyond)
	add("answers by the failure policy", func(r *Result) string {
		if r.policy == 0 {
			return "–"
		}
		return fmt.Sprintf("%.4f %%", 100*float64(r.policy)/float64(max(r.latencies.added.count(), 1)))
	})
	add("bound", func(r *Result) string { return r.bound() })
	return rows
}

// short has three digits.
func short(d time.Duration) string {
	for _, u := range []struct {
		name string
		unit time.Duration
	}{{"s", time.Second}, {"ms", time.Millisecond}, {"µs", time.Microsecond}} {
		if d >= u.unit {
			return fmt.Sprintf("%.3g %s", float64(d)/float64(u.unit), u.name)
		}
	}
	return fmt.Sprintf("%d ns", d.Nanoseconds())
}

func share(part, whole time.Duration) float64 { return float64(part) / float64(max(whole, 1)) }

func waited(r *Result) string {
	if r.control {
		return "–"
	}
	return fmt.Sprintf("%.3f %%", 100*float64(r.books.waited)/float64(max(r.requests, 1)))
}

func perRequestText(n uint64, requests int64, format string) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf(format, float64(n)/float64(max(requests, 1)))
}

func perSecond(n uint64, d time.Duration) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", float64(n)/d.Seconds())
}

func scripts(r *Result) string {
	if r.redis.scripts == 0 {
		return "–"
	}
	each := float64(r.redis.scripting.Nanoseconds()) / 1000 / float64(r.redis.scripts)
	return fmt.Sprintf("%s; %.1f", perSecond(r.redis.scripts, r.elapsed), each)
}

func perCall(d time.Duration, requests int64) string {
	return fmt.Sprintf("%.2f µs", float64(d.Nanoseconds())/1000/float64(max(requests, 1)))
}

// others is what the machine did beside the run, which delays it and is not its doing.
func others(r *Result) string {
	if r.own.machine == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", max(0, 100*share(r.own.machine-r.own.cpu-r.redis.cpu, r.elapsed)))
}

func admitted(r *Result) string {
	if r.control {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*r.verdict.outcome.Ratio())
}

func beyond(r *Result) string {
	switch m := r.verdict.most; {
	case r.control:
		return "–"
	case m.broken():
		return fmt.Sprintf("%.1f tokens (%.1f %%)", m.excess, 100*m.excess/float64(r.Plan.Limit))
	}
	return "none"
}

func (r *Result) bound() string {
	switch {
	case r.control:
		return "–"
	case r.verdict.nearest.broken():
		return "BROKEN"
	}
	return "held"
}

// pathRows are the latencies of the first result by who answered.
func (rep *Report) pathRows() (rows []row) {
	r := rep.Results[0]
	all := float64(max(r.latencies.added.count(), 1))
	for i, l := range r.latencies.paths {
		if l.count() == 0 {
			continue
		}
		line := row{name: r.paths[i], cells: []string{fmt.Sprintf("%.3f %%", 100*float64(l.count())/all)}}
		for _, p := range percentiles {
			line.cells = append(line.cells, short(l.at(p.q)))
		}
		rows = append(rows, line)
	}
	return rows
}

// target is a figure that is to be reached.
type target struct {
	what, want, got string
	reached         bool
}

func (rep *Report) targets() []target {
	r := rep.Results[0]
	p50, p999 := r.latencies.added.at(50), r.latencies.added.at(99.9)
	cpu := share(r.redis.cpu, r.elapsed)
	return []target{
		{"added by the call, p50", "< 1 µs", short(p50), p50 < time.Microsecond},
		{"added by the call, p99.9", "< 2 ms", short(p999), p999 < budget},
		{"Redis's processor time, of a core", "≤ 10 %", fmt.Sprintf("%.1f %%", 100*cpu), cpu <= 0.10},
	}
}

// budget is what the field usually allows a limiter to add to a request.
const budget = 2 * time.Millisecond
