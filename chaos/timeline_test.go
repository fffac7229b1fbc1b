package chaos

import (
	"fmt"
	"strings"
	"time"

	"github.com/hybridlimit/hybrid"
)

// report tells a run so that nobody needs to run it again to understand it.
func (o *outcome) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fault %q, seed %d, %d nodes, %v, %v\n%s\n", o.fault, o.seed, o.nodes, o.limit, o.accuracy, o.figures())
	o.timeline(&b)
	fmt.Fprintf(&b, "the log of the server ends:\n%s\n", o.serverLog)
	return b.String()
}

// figures sums a run up in a line.
func (o *outcome) figures() string {
	var longest time.Duration
	byPolicy := 0
	for i := range o.answers {
		longest = max(longest, o.answers[i].took)
		if o.answers[i].path == hybrid.PathFallback {
			byPolicy++
		}
	}
	tripped, outages := time.Duration(0), 0
	for node := range o.nodes {
		for _, out := range o.outages(node) {
			tripped, outages = max(tripped, out.from-o.began), outages+1
		}
	}
	calm, fault, end := o.peaks()
	return fmt.Sprintf("%d requests, %d by policy; longest call %v, latest timer %v, stalls of %v, felt for %v; %d outages, seen after %v at the latest, over %v after the store was back; "+
		"goroutines %d, %d, %d and connections %d, %d, %d in the calm, at most and at the end",
		len(o.answers), byPolicy, longest.Round(time.Millisecond/10), o.worstControl(0, o.stopped).Round(time.Millisecond/10),
		o.stoodStill(0, o.stopped).Round(time.Millisecond/10), o.disturbed(), outages, tripped.Round(time.Millisecond), (o.recovered() - o.ready).Round(time.Millisecond),
		calm.goroutines, fault.goroutines, end.goroutines, calm.connections, fault.connections, end.connections)
}

// bin is how much of a run one line of its timeline tells.
const bin = 100 * time.Millisecond

var paths = []hybrid.Path{hybrid.PathSlice, hybrid.PathFloor, hybrid.PathExact, hybrid.PathMemo, hybrid.PathFallback}

// timeline writes a line per bin, with what happened between.
func (o *outcome) timeline(b *strings.Builder) {
	fmt.Fprintf(b, "%9s", "")
	for _, p := range paths {
		fmt.Fprintf(b, " %8v", p)
	}
	fmt.Fprintf(b, " %8s %9s %9s %9s %6s %6s\n", "admitted", "slowest", "timers", "pings", "gorout", "conns")
	next := 0
	for from := time.Duration(0); from < o.stopped; from += bin {
		o.happenings(b, from)
		counts, admitted, slowest := map[hybrid.Path]int{}, 0, time.Duration(0)
		for ; next < len(o.answers) && o.answers[next].at < from+bin; next++ {
			a := &o.answers[next]
			counts[a.path]++
			slowest = max(slowest, a.took)
			if a.allowed {
				admitted++
			}
		}
		fmt.Fprintf(b, "%8.1fs", from.Seconds())
		for _, p := range paths {
			fmt.Fprintf(b, " %8d", counts[p])
		}
		need := o.peak(func(s sample) bool { return s.at >= from && s.at < from+bin })
		fmt.Fprintf(b, " %8d %7.1fms %7.1fms %7.1fms %6d %6d\n", admitted, milliseconds(slowest), milliseconds(o.worstControl(from, from+bin)), milliseconds(o.worstPing(from, from+bin)), need.goroutines, need.connections)
	}
}

// worstPing returns how late the server was at worst.
func (o *outcome) worstPing(from, to time.Duration) (worst time.Duration) {
	for _, p := range o.pings {
		if p.at >= from && p.at < to {
			worst = max(worst, p.by)
		}
	}
	return worst
}

// happenings writes the marks, events and log lines of a bin.
func (o *outcome) happenings(b *strings.Builder, from time.Duration) {
	at := func(when time.Duration, format string, args ...any) {
		if when >= from && when < from+bin {
			fmt.Fprintf(b, "%8.3fs -- %s\n", when.Seconds(), fmt.Sprintf(format, args...))
		}
	}
	at(o.began, "the fault begins")
	at(o.ended, "the fault ends")
	at(o.ready, "the store answers")
	for _, e := range o.events {
		if e.down {
			at(e.at, "node %d: down, %v", e.node, e.err)
		} else {
			at(e.at, "node %d: up", e.node)
		}
	}
	for _, l := range o.logs {
		at(l.at, "node %d logs %s", l.node, l.text)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
