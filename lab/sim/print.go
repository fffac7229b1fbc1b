package sim

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Print writes the three figures of a run.
func (f *Figures) Print(w io.Writer) {
	e := &f.Experiment
	say := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-6s "+format+"\n", append([]any{name}, args...)...)
	}
	say("run", "%v, %v, %d nodes, %d keys; %d requests in %v after %v (%.1f s)", e.Limit, e.Accuracy, e.Nodes, e.Keys,
		f.Requests, e.Span, e.Warm, f.Elapsed.Seconds())
	f.printOver(say)
	f.printUnder(say)
	f.printCost(say)
	if f.Refunds+f.Charges > 0 {
		say("later", "%d refunds of %d tokens, %d charges of %d tokens; the store knew of each that reached it within %v",
			f.Refunds, f.Refunded, f.Charges, f.Charged, f.Known)
	}
	for _, err := range f.Problem {
		say("BROKEN", "%v", err)
	}
}

func (f *Figures) printOver(say func(name, format string, args ...any)) {
	where := "never"
	if f.Excess > 0 {
		where = fmt.Sprintf("%d tokens in %v", f.Worst.Admitted, time.Duration(f.Worst.To-f.Worst.From))
	}
	say("over", "%.2f %% of the burst beyond the ideal bucket at worst (%s; %+.3f tokens)", 100*f.Over(), where, f.Excess)
}

func (f *Figures) printUnder(say func(name, format string, args ...any)) {
	say("under", "admitted %.2f %% of what a perfect central limiter admits (%d of %d; %d offered)", 100*f.Ratio(), f.Admitted, f.Ideal, f.Offered)
	if w, ratio := f.WorstWindow(); !math.IsInf(ratio, 1) {
		say("", "worst window %.2f %% (%d of %d, from %v)", 100*ratio, w.Admitted, w.Ideal, w.From)
	}
	say("", "%.2f %% of the requests denied falsely; fairness %.3f", 100*f.FalselyDenied(), f.Fairness())
	if !math.IsNaN(f.Free) {
		say("", "at the end %.1f tokens of the first key free, %.0f lent", f.Free, f.Lent)
	}
}

func (f *Figures) printCost(say func(name, format string, args ...any)) {
	n := f.Requests
	say("cost", "%.4f operations, %.4f commands, %.4f round trips per request; %.2f %% of the requests waited, %.2f %% got the failure policy",
		f.Operations(), share(f.Cost.Commands, n, 0), share(f.Cost.RoundTrips, n, 0), 100*f.Waited(), 100*share(f.Policy, n, 0))
	say("", "%.1f other commands per second and node; %.2f times the one-shot worst-case bound",
		float64(f.Cost.Other)/f.Experiment.Span.Seconds()/float64(f.Experiment.Nodes), f.Competitive())
	f.printReasons(say)
}

// printReasons says what the store was asked for, most first.
func (f *Figures) printReasons(say func(name, format string, args ...any)) {
	var parts []string
	for r, n := range f.Cost.By {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%.1f %% %v", 100*share(n, f.Cost.Operations, 0), Reason(r)))
		}
	}
	if len(parts) > 0 {
		say("", "of the operations: %s", strings.Join(parts, ", "))
	}
}

// Brief is a run of faults in one line.
func (f *Figures) Brief() string {
	e := &f.Experiment
	return fmt.Sprintf("%v, %v, %s, %d keys, %d faults: %d requests, %d operations, %d by policy, admitted %.0f %%",
		e.Limit, e.Accuracy, policies[e.OnFailure], e.Keys, len(e.Faults), f.Requests, f.Cost.Operations, f.Policy, 100*f.Ratio())
}
