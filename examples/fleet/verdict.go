package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/oracle"
)

// verdict is what the replay of a run says.
type verdict struct {
	outcome oracle.Outcome
	paths   [256]int64 // requests, by hybrid.Path
	policy  int64      // requests admitted by the failure policy, which the bound leaves out
	sum     hybrid.LimiterStats
	calls   uint64
	downs   uint64
	took    *hdrhistogram.Histogram // ns
	lag     *hdrhistogram.Histogram // ns

	nearest finding // the key that came nearest to its bound, or went beyond it
	most    finding // the key that went furthest beyond the limit itself
}

// finding is the worst interval of one key.
type finding struct {
	key    uint32
	report oracle.Report
	excess float64 // of the report, less what the time that a call took leaves open
}

func (f finding) broken() bool { return f.excess > 0 && !f.report.Held() }

// judge replays every request of every key.
func judge(c config, m measurement) *verdict {
	v := &verdict{took: hdrhistogram.New(1, int64(time.Hour), 3), lag: hdrhistogram.New(1, int64(time.Hour), 3)}
	var all []request
	for _, r := range m.results {
		all = append(all, r.Requests...)
		v.count(r)
	}
	slices.SortFunc(all, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.At, b.At))
	})
	limit := oracle.New(c.Limit.Count, c.Limit.Period, c.Limit.Count)
	over := hybrid.Accuracy(c.Accuracy).Over()
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Key == all[0].Key {
			n++
		}
		v.judgeKey(limit, over, all[:n])
		all = all[n:]
	}
	return v
}

func (v *verdict) count(r result) {
	v.sum.Operations += r.Stats.Operations
	v.sum.Blocked += r.Stats.Blocked
	v.sum.Keys += r.Stats.Keys
	v.calls += r.Calls
	v.downs += r.Downs
	for _, q := range r.Requests {
		v.paths[q.Path]++
		if q.Allowed && q.Path == hybrid.PathFallback {
			v.policy++
		}
		_ = v.took.RecordValue(max(int64(q.Took), 1)) // an hour is never exceeded
		_ = v.lag.RecordValue(max(int64(q.Lag), 1))
	}
}

// judgeKey replays one key. Requests are stamped when Allow was called, and
// admitted at some moment until it returned: so an interval may have been
// longer than it looks by the longest call, and what refills in that time
// proves nothing. Admissions by the failure policy are outside of the bound.
func (v *verdict) judgeKey(limit oracle.Limit, over float64, requests []request) {
	replay := make([]oracle.Request, len(requests))
	var admitted []oracle.Admission
	var longest time.Duration
	for i, r := range requests {
		replay[i] = oracle.Request{At: r.At, Cost: 1, Allowed: r.Allowed}
		if r.Allowed && r.Path != hybrid.PathFallback {
			admitted = append(admitted, oracle.Admission{At: r.At, Cost: 1})
			longest = max(longest, r.Took)
		}
	}
	v.outcome.Add(limit.Compare(replay))

	check := func(l oracle.Limit) finding {
		r := l.Check(admitted)
		return finding{requests[0].Key, r, r.Excess - (l.Bound(longest) - l.Bound(0))}
	}
	worst := func(a, b finding) finding {
		if a.key == 0 || b.excess > a.excess {
			return b
		}
		return a
	}
	v.most = worst(v.most, check(limit))
	v.nearest = worst(v.nearest, check(limit.Over(over)))
}

func (v *verdict) err() error {
	if v.nearest.broken() {
		return fmt.Errorf("bound broken by key user:%d: %v", v.nearest.key, v.nearest.report)
	}
	if v.sum.Operations > uint64(v.outcome.Offered) {
		return fmt.Errorf("%d operations for %d requests: never more than one per request is promised", v.sum.Operations, v.outcome.Offered)
	}
	return nil
}

// title says what is run.
func (c config) title() string {
	how := "in one process"
	if c.Procs {
		how = "in processes of their own"
	}
	return fmt.Sprintf("%d nodes %s, %d requests/s for %v s, %d keys (Zipf %v), %v each, %v",
		c.Nodes, how, c.Rate, c.Seconds, c.Keys, c.Zipf, &c.Limit, hybrid.Accuracy(c.Accuracy))
}

func (v *verdict) print(out io.Writer, c config, m measurement) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	o, n := v.outcome, float64(max(v.outcome.Offered, 1))

	fmt.Fprintln(w)
	row("offered", "%d requests", o.Offered)
	row("admitted", "%d, %.2f %% of the %d of a perfect central limiter", o.Admitted, 100*o.Ratio(), o.Ideal)
	row("denied", "%d", o.Offered-o.Admitted)
	row("over-admission", "%s", v.overAdmission(c))
	if v.policy > 0 {
		row("failure policy", "admitted %d when Redis did not answer in time, which the line above leaves out", v.policy)
	}
	row("Redis operations", "%.4f per request (%d)", float64(v.sum.Operations)/n, v.sum.Operations)
	row("Redis calls", "%.4f per request (%d)", float64(v.calls)/n, v.calls)
	row("blocked", "%.3f %% of the requests waited for Redis", 100*float64(v.sum.Blocked)/n)
	row("answered by", "%s", v.answeredBy())
	row("latency of Allow", "%s", quantiles(v.took))
	row("generator lag", "%s (not in the latency)", quantiles(v.lag))
	if m.cpu >= 0 {
		row("Redis CPU", "%.1f %% of a core", 100*m.cpu/m.elapsed.Seconds())
	} else {
		row("Redis CPU", "not told by this server")
	}
	if v.downs > 0 {
		row("Redis given up", "%d times, by all nodes together: slower than -timeout %v, or away", v.downs, c.Timeout)
	}
	if c.floors() && c.Warmup < c.Limit.Period {
		row("note", "floors are earned over %v: -warmup %v shows a fleet that has been up for a while", c.Limit.Period, c.Limit.Period+6*time.Second)
	}
	return w.Flush()
}

func (v *verdict) overAdmission(c config) string {
	state := "held"
	if v.nearest.broken() {
		state = "BROKEN"
	}
	most := "no key above its limit"
	if v.most.broken() {
		most = fmt.Sprintf("at most %.1f above a limit of %d (user:%d)", v.most.excess, c.Limit.Count, v.most.key)
	}
	return fmt.Sprintf("%s; bound of +%.0f %% %s (nearest: %+.1f, user:%d)", most,
		100*hybrid.Accuracy(c.Accuracy).Over(), state, v.nearest.excess, v.nearest.key)
}

func (v *verdict) answeredBy() (s string) {
	for p, n := range v.paths {
		if n > 0 {
			s += fmt.Sprintf("%v %.2f %%  ", hybrid.Path(p), 100*float64(n)/float64(v.outcome.Offered))
		}
	}
	return s
}

func quantiles(h *hdrhistogram.Histogram) string {
	at := func(q float64) time.Duration { return round(time.Duration(h.ValueAtQuantile(q))) }
	return fmt.Sprintf("p50 %v  p99 %v  p99.9 %v  max %v", at(50), at(99), at(99.9), round(time.Duration(h.Max())))
}

// round leaves three digits.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
